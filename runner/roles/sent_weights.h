// runner/roles/sent_weights.h: writes a file of weights that worker 0 sends: those of the best
// epoch, or their moving average.
#pragma once

#include <kj/async.h>
#include <kj/function.h>

#include "rpc/wait_list.h"
#include "runner/logs/job.capnp.h"
#include "runner/roles/one_thread.h"
#include "runner/roles/part_transfer.h"

namespace runner {

// Runs on the coordinator's thread. A second thread writes the file while the job continues.
class SentWeights {
public:
  // Writes every part of the kind `part`, each a whole file, to `path`. Refuses files of more than
  // `bytesMax` bytes. If a file cannot be written, calls `failed` with the reason and what to do.
  // `oneThread` must outlive this object.
  SentWeights(Part part, kj::String path, uint64_t bytesMax,
      kj::Function<void(kj::StringPtr)> failed, kj::Maybe<const OneThread&> oneThread = nullptr);
  // Waits until a file that is being written is on disk.
  ~SentWeights() noexcept(false);

  // Takes a piece of the file: see Session.savePart() in job.capnp. Throws if it is not the next
  // one. After the last piece, the file is written. It replaces the previous one.
  void take(Session::SavePartParams::Reader piece);
  // Resolves when the newest file is on disk. Tries once more if that has failed, and rejects with
  // the reason if it fails again. Call once, after the last piece.
  kj::Promise<void> finish();

private:
  void begin();
  // Writes `next`, and any files that arrive meanwhile. Without `next`, writes `current` again.
  kj::Promise<void> write();
  kj::Promise<void> whenIdle();

  const Part part;
  const kj::String path;
  const uint64_t bytesMax;
  kj::Function<void(kj::StringPtr)> failed;
  const kj::Maybe<const OneThread&> oneThread;
  IncomingPart incoming;
  kj::Array<kj::byte> next;       // a whole file that waits for `current`; null if there is none
  kj::Array<kj::byte> current;    // the file that is being written, or that could not be written
  kj::Maybe<kj::String> problem;  // why `current` is not on disk
  bool isWriting = false;
  rpc::WaitList waiting;  // for whenIdle()
  kj::Promise<void> writing = nullptr;
};

}  // namespace runner

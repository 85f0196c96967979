// runner/roles/sent_weights.h: writes a file of weights that worker 0 sends: those of the best
// epoch, or their moving average.
#pragma once

#include <kj/async.h>
#include <kj/function.h>
#include <kj/vector.h>

#include "runner/logs/job.capnp.h"
#include "runner/roles/one_thread.h"
#include "runner/roles/part_transfer.h"

namespace runner {

// On the coordinator's thread. A second thread writes, while the job goes on.
class SentWeights {
public:
  // Writes the parts `part` to `path`. Takes files of at most `bytesMax` bytes. Calls `failed` with
  // the reason, which has the way out, when the file cannot be written. `oneThread` must outlive
  // it.
  SentWeights(Part part, kj::String path, uint64_t bytesMax,
      kj::Function<void(kj::StringPtr)> failed, kj::Maybe<const OneThread&> oneThread = nullptr);
  // Waits until a file that is being written is on disk.
  ~SentWeights() noexcept(false);

  // Takes a piece of the file: see Session.savePart() in job.capnp. Throws if it is not the next
  // one. When it was the last one, the file is written. It replaces the one before.
  void take(Session::SavePartParams::Reader piece);
  // Resolves when the newest file is on disk. Tries once more if that has failed, and rejects with
  // the reason if it fails again. Call once, after the last piece.
  kj::Promise<void> finish();

private:
  void begin();
  // Writes `next`, and whatever comes meanwhile. Without `next`, writes `current` again.
  kj::Promise<void> write();
  kj::Promise<void> whenIdle();

  const Part part;
  const kj::String path;
  const uint64_t bytesMax;
  kj::Function<void(kj::StringPtr)> failed;
  const kj::Maybe<const OneThread&> oneThread;
  IncomingPart incoming;
  kj::Array<kj::byte> next;     // is whole, and waits for the one that is being written. Often null
  kj::Array<kj::byte> current;  // is being written, or could not be written
  kj::Maybe<kj::String> problem;  // why `current` is not on disk
  bool isWriting = false;
  kj::Vector<kj::Own<kj::PromiseFulfiller<void>>> waiting;
  kj::Promise<void> writing = nullptr;
};

}  // namespace runner

// runner/roles/live_progress.h: the progress of a worker's compute thread, for the heartbeats of
// its io thread.
#pragma once

#include <kj/common.h>
#include <atomic>

namespace runner {

using kj::uint;

// The progress of the compute thread, which writes it. The io thread sends it in heartbeats.
struct LiveProgress {
  std::atomic<uint> epoch{0};
  std::atomic<uint64_t> step{0};
  std::atomic<double> lossSum{0};
  std::atomic<uint64_t> correct{0};
  std::atomic<uint64_t> images{0};
  std::atomic<double> read_s{0};
  std::atomic<double> steps_s{0};
  // Counts the beginnings and the ends of the pieces of OwnWork. It is odd during a piece.
  std::atomic<uint64_t> work{0};
  // Whether the io thread has read the progress since the compute thread last asked. A compute
  // thread whose sums are on a device fetches them only then.
  mutable std::atomic<bool> wasRead{false};
};

// While it lives, the compute thread waits for its processor, its devices and its files, but for no
// other role. The work consists of one or more pieces. A worker whose piece lasts
// cluster.stall_timeout_s counts as lost, because something hangs. At most one object per worker.
class OwnWork {
public:
  // `progress` must outlive it.
  explicit OwnWork(LiveProgress& progress): progress(progress) { progress.work++; }
  ~OwnWork() noexcept(false) { progress.work++; }
  KJ_DISALLOW_COPY(OwnWork);

  // Ends a piece, and begins the next.
  void next() { progress.work += 2; }

private:
  LiveProgress& progress;
};

}  // namespace runner

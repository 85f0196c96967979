// io/batches/reader_balance.h: decides how many threads read records for a worker.
#pragma once

#include <kj/common.h>

#include <cstdint>

namespace io {

using kj::uint;

// Adds a thread while steps wait for records, as long as each new thread shortens the wait. So a
// worker takes no more threads than it needs, nor more than the machine has cores for.
class ReaderBalance {
public:
  ReaderBalance(uint threads, uint threadsMax): threads(threads), threadsMax(threadsMax) {}

  // To be called after each batch. `waited_ns`: for how long the step has waited for it. `now_ns`:
  // the time by any clock. Returns whether one more thread should read from now on.
  bool needsMore(uint64_t waited_ns, uint64_t now_ns);

private:
  // One measurement takes at least this long and this many batches.
  static constexpr uint64_t SPAN_NS = 1000000000;
  static constexpr uint BATCHES_MIN = 8;
  // If steps wait for less than this share of the time, no thread is added.
  static constexpr double SHARE_MIN = 0.05;
  // A thread helps if the waiting time per batch falls below this share of the former one.
  static constexpr double HELPS_BELOW = 0.97;

  uint threads;
  const uint threadsMax;
  bool isSettled = false;
  uint batches = 0;  // since `begin_ns`
  uint64_t begin_ns = 0;
  uint64_t waited_ns = 0;       // since then
  double waitedBefore_ns = -1;  // per batch, before the last thread was added; -1: none was
};

}  // namespace io

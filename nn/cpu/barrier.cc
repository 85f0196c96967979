#include "nn/cpu/barrier.h"

#include <immintrin.h>
#include <time.h>

namespace nn::cpu {
namespace {

uint64_t now_ns() {
  struct timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return uint64_t(now.tv_sec) * 1'000'000'000 + uint64_t(now.tv_nsec);
}

}  // namespace

void Barrier::meet() {
  uint meeting = meetings.load(std::memory_order_relaxed);
  if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == lanes) {
    arrived.store(0, std::memory_order_relaxed);
    // Sequentially consistent, so that notify_all() does not look for waiters before the store.
    meetings.store(meeting + 1);
    meetings.notify_all();
    return;
  }
  constexpr uint LOOKS = 16;  // between two looks at the clock
  auto isOver = [&]() { return meetings.load(std::memory_order_acquire) != meeting; };
  uint64_t begin = now_ns(), limit = spin_ns.load(std::memory_order_relaxed);
  do {
    for (uint i = 0; i < LOOKS; ++i) {
      if (isOver()) return;
      _mm_pause();
    }
  } while (now_ns() - begin < limit);
  meetings.wait(meeting, std::memory_order_acquire);
  bool cameSoon = now_ns() - begin <= SPIN_MAX_NS;
  uint64_t longer = 2 * limit + SPIN_MAX_NS / 16;
  limit = !cameSoon ? limit / 4 : longer < SPIN_MAX_NS ? longer : SPIN_MAX_NS;
  spin_ns.store(limit, std::memory_order_relaxed);
}

}  // namespace nn::cpu

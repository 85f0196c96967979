// nn/cpu/barrier.h: where the lanes of a step meet.
#pragma once

#include <kj/common.h>
#include <stdint.h>

#include <atomic>

namespace nn::cpu {

using kj::uint;

// A step has hundreds of meetings, and lanes mostly arrive within microseconds of each other. To
// block and to be woken takes longer than that. So a lane spins up to a time limit before it
// blocks. Where other processes take the lanes' cores away, spinning is a waste. So a lane that had
// to block quarters the limit if the others came much later, and about doubles it if they came soon
// after the limit.
class Barrier {
public:
  // For `lanes` threads.
  explicit Barrier(uint lanes): lanes(lanes) {}
  KJ_DISALLOW_COPY(Barrier);

  // Returns when all lanes have called it. What they did before is then visible to all.
  void meet();

private:
  const uint lanes;
  alignas(64) std::atomic<uint> arrived = 0;
  alignas(64) std::atomic<uint> meetings = 0;
  alignas(64) std::atomic<uint64_t> spin_ns = SPIN_MAX_NS;

  // More than it takes to block and to be woken on a virtual machine.
  static constexpr uint64_t SPIN_MAX_NS = 150'000;
};

}  // namespace nn::cpu

// nn/cpu/barrier.h: a barrier at which the lanes of a step meet.
#pragma once

#include <kj/common.h>
#include <stdint.h>

#include <atomic>

namespace nn::cpu {

using kj::uint;

// A step has hundreds of meetings, and lanes mostly arrive within microseconds of each other.
// Blocking and waking up takes longer than that. So a lane spins up to a time limit before it
// blocks. Spinning is wasteful if other processes use the lanes' cores. So a lane that had to block
// divides the limit by four if the others arrived much later, and about doubles it if they arrived
// soon after the limit.
class Barrier {
public:
  // For `lanes` threads.
  explicit Barrier(uint lanes): lanes(lanes) {}
  KJ_DISALLOW_COPY(Barrier);

  // Returns when all lanes have called it. All their earlier writes are then visible to all lanes.
  void meet();

private:
  const uint lanes;
  alignas(64) std::atomic<uint> arrived = 0;
  alignas(64) std::atomic<uint> meetings = 0;
  alignas(64) std::atomic<uint64_t> spin_ns = SPIN_MAX_NS;

  // Longer than blocking and waking up take on a virtual machine.
  static constexpr uint64_t SPIN_MAX_NS = 150'000;
};

}  // namespace nn::cpu

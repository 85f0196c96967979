// nn/cpu/barrier.h: where the lanes of a step meet.
#pragma once

#include <kj/common.h>
#include <stdint.h>

#include <atomic>

namespace nn::cpu {

using kj::uint;

// A step has hundreds of meetings, and lanes mostly come within microseconds of each other. To
// block and to be woken takes longer than that. So a lane first looks for the others for a while,
// and then blocks. Where other processes take the lanes' cores away, looking is a waste. So each
// time it was in vain, the while becomes a quarter. When the others came soon after all, it
// doubles.
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
  alignas(64) std::atomic<uint64_t> patience_ns = PATIENCE_MAX_NS;

  // As long as it takes to block and to be woken on a virtual machine.
  static constexpr uint64_t PATIENCE_MAX_NS = 150'000;
};

}  // namespace nn::cpu

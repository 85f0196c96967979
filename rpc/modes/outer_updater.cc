#include "rpc/modes/outer_updater.h"

namespace rpc {

OuterUpdater::OuterUpdater(const OuterConfig& config, uint workers)
    : rule(config.rule),
      learningRate(float(config.learningRate)),
      momentum(float(config.momentumOf(workers))),
      // By default, the momentum depends on the number of workers, and is 0 for one worker. Even
      // then there is a state, so that its size stays the same if that number changes.
      hasState(
          momentum != 0 || (rule == OuterConfig::BLOCK_MOMENTUM && config.momentum == nullptr)) {}

uint OuterUpdater::stateArrays(const Slice&) const {
  return hasState ? 1 : 0;
}

void OuterUpdater::update(const Slice& slice, const Round& round, kj::ArrayPtr<const float> current,
    kj::ArrayPtr<float> next, kj::ArrayPtr<float> state) {
  float rescale = 1.0f / round.divisor;
  const float* sum = round.gradientSum.begin();
  const float* w = current.begin();
  float* __restrict__ out = next.begin();
  float* __restrict__ v = state.begin();
  if (!hasState) {
    for (uint64_t i = 0; i < slice.size; i++) out[i] = w[i] - learningRate * (rescale * sum[i]);
  } else if (rule == OuterConfig::NESTEROV) {
    for (uint64_t i = 0; i < slice.size; i++) {
      float g = rescale * sum[i];
      v[i] = momentum * v[i] + g;
      out[i] = w[i] - learningRate * (g + momentum * v[i]);
    }
  } else {
    for (uint64_t i = 0; i < slice.size; i++) {
      v[i] = momentum * v[i] - learningRate * (rescale * sum[i]);
      out[i] = w[i] + v[i];
    }
  }
}

}  // namespace rpc

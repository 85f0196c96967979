#include "runner/roles/outer_updater.h"

#include "nn/optimizer/sgd_loop.h"

namespace runner {

OuterUpdater::OuterUpdater(const rpc::OuterConfig& config, kj::uint workers)
    : rule(config.rule),
      learningRate(float(config.learningRate)),
      momentum(float(config.momentumOf(workers))) {}

kj::uint OuterUpdater::stateArrays(const rpc::Slice&) const {
  return momentum == 0 ? 0 : 1;
}

void OuterUpdater::update(const rpc::Slice& slice, const rpc::Round& round,
    kj::ArrayPtr<const float> current, kj::ArrayPtr<float> next, kj::ArrayPtr<float> state) {
  nn::SgdLoop loop{.size = slice.size,
      .gradient = round.gradientSum.begin(),
      .current = current.begin(),
      .next = next.begin(),
      .state = state.begin(),
      .rescale = 1.0f / round.divisor,
      .learningRate = learningRate,
      .momentum = momentum,
      .decay = 0};
  if (momentum == 0) {
    nn::sgdPlain(loop);
  } else if (rule == rpc::OuterConfig::NESTEROV) {
    nn::sgdNesterov(loop);
  } else {
    nn::sgdRateInside(loop);
  }
}

}  // namespace runner

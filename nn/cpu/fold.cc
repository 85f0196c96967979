#include "nn/cpu/fold.h"

#include <kj/debug.h>

#include <cmath>

namespace nn::cpu {

kj::Own<BatchTask> fold(
    PlanBuilder& builder, const StagedUnit& convolution, const Node& norm, uint turn) {
  auto& graph = builder.graph;
  auto parameter = [&](const Node& node, uint key) -> const float* {
    return builder.arrays.parameters.begin() + graph.keys[node.keys.begin + key].offset;
  };
  auto statistic = [&](uint i) -> const float* {
    return builder.arrays.statistics.begin() + graph.statistics[norm.statistics.begin + i].offset;
  };
  auto& node = *convolution.node;
  size_t filters = graph.keys[node.keys.begin].rows, inputs = graph.keys[node.keys.begin].cols;
  const float *weights = parameter(node, 0),
              *bias = node.keys.size() > 1 ? parameter(node, 1) : nullptr;
  const float *gamma = parameter(norm, 0), *beta = parameter(norm, 1);
  const float *movingMean = statistic(0), *movingVariance = statistic(1);
  auto op = norm.op.get<BatchNorm>();
  const Buffer& to = KJ_ASSERT_NONNULL(builder.storage[convolution.id].folded);
  return newWholeTask(turn, [=, &to](const Step& step, uint) {
    const float* weight = weights;
    float* folded = step.memory.floatsOf(to, 0);
    float* foldedBias = folded + filters * inputs;
    for (size_t k = 0; k < filters; ++k) {
      double inverse = 1 / std::sqrt(double(movingVariance[k]) + op.epsilon);
      double scale = op.fixedGamma ? inverse : gamma[k] * inverse;
      double before = bias == nullptr ? 0 : bias[k];
      foldedBias[k] = float(scale * (before - movingMean[k]) + beta[k]);
      for (size_t i = 0; i < inputs; ++i) *folded++ = float(scale) * *weight++;
    }
  });
}

}  // namespace nn::cpu

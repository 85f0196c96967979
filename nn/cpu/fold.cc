#include "nn/cpu/fold.h"

#include <kj/debug.h>

#include <cmath>

namespace nn::cpu {
namespace {

// The arrays of both in the flat ones; null bias if the convolution has none.
struct Arrays {
  const float* weights;
  const float* bias;
  const float* gamma;
  const float* beta;
  const float* movingMean;
  const float* movingVariance;
};

class Fold final: public WholeTask {
public:
  Fold(BatchNorm op, Arrays arrays, size_t filters, size_t inputs, const Buffer& to, uint turn)
      : WholeTask(turn), op(op), arrays(arrays), filters(filters), inputs(inputs), to(to) {}

protected:
  void runWhole(const Step& step, uint) override {
    const float* weight = arrays.weights;
    float* folded = step.memory.floatsOf(to, 0);
    float* bias = folded + filters * inputs;
    for (size_t k = 0; k < filters; ++k) {
      double inverse = 1 / std::sqrt(double(arrays.movingVariance[k]) + op.epsilon);
      double scale = op.fixedGamma ? inverse : arrays.gamma[k] * inverse;
      double before = arrays.bias == nullptr ? 0 : arrays.bias[k];
      bias[k] = float(scale * (before - arrays.movingMean[k]) + arrays.beta[k]);
      for (size_t i = 0; i < inputs; ++i) *folded++ = float(scale) * *weight++;
    }
  }

private:
  BatchNorm op;
  Arrays arrays;
  size_t filters, inputs;
  const Buffer& to;
};

}  // namespace

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
  auto& key = graph.keys[node.keys.begin];
  Arrays arrays = {.weights = parameter(node, 0),
      .bias = node.keys.size() > 1 ? parameter(node, 1) : nullptr,
      .gamma = parameter(norm, 0),
      .beta = parameter(norm, 1),
      .movingMean = statistic(0),
      .movingVariance = statistic(1)};
  auto& to = KJ_ASSERT_NONNULL(builder.storage[convolution.id].folded);
  return kj::heap<Fold>(norm.op.get<BatchNorm>(), arrays, key.rows, key.cols, to, turn);
}

}  // namespace nn::cpu

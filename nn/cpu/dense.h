// nn/cpu/dense.h: a dense layer as oneDNN's sgemm on plain rows of floats.
#pragma once

#include "nn/cpu/tasks.h"

namespace nn::cpu {

// A dense layer: its sizes, and its arrays in the flat ones. `bias` is null if there is none.
// Otherwise it follows the weights, and its gradient follows theirs. The weights are used where
// they are.
struct DenseLayer {
  size_t inputs;
  uint units;
  const float* weights;
  const float* bias;
  float* gradient;  // of the weights, then of the bias
  Buffer* sums;     // the gradients of lane 1, of lane 2, …; lane 0 adds to `gradient`

  size_t parameters() const { return units * inputs + (bias == nullptr ? 0 : units); }
};

// Layers must outlive their tasks. Rows may be longer than the values in them. With SET, the rest
// of a row of `y` and `dx` becomes 0.
kj::Own<Task> denseForward(const DenseLayer& layer, Place x, Place y);
kj::Own<Task> denseBackwardWeights(const DenseLayer& layer, Place x, Place dy);
kj::Own<Task> denseBackwardData(const DenseLayer& layer, Place dy, Place dx, Write write);
kj::Own<BatchTask> sumGradient(const DenseLayer& layer);

}  // namespace nn::cpu

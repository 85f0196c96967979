// nn/cpu/norm.h: a batch norm, and its tasks: statistics, forward and backward.
#pragma once

#include "nn/cpu/tasks.h"

namespace nn::cpu {

// A batch norm, with the ReLU or GELU after it if there is one. Points to its arrays in the flat
// ones, and to its own buffers.
struct Norm {
  Extent extent;
  Batch batch;
  BatchNorm op;
  After after;
  const float* gamma;
  const float* beta;
  float* gammaGradient;
  float* betaGradient;
  float* movingMean;
  float* movingVariance;
  // The bias of the convolution before it, which does not add it because the batch norm cancels it.
  // The bias still moves the moving mean. Null if there is none.
  const float* inertBias;
  Buffer* channels;  // eight arrays
  Buffer* statisticsPartials;
  Buffer* gradientPartials;

  static constexpr uint ARRAYS = 8;
  // Returns the arrays from block `firstBlock` on.
  Channels channelsIn(const Addresses& memory, size_t firstBlock = 0) const;
};

// Norms must outlive their tasks. `y` is the input of the norm, `gradient` the gradient of its
// output. Each may be a run of the channels in a buffer: see Place.
kj::Own<Task> takeStatistics(const Norm& norm, Place y);
kj::Own<BatchTask> combineStatistics(const Norm& norm);
// In validation, replaces takeStatistics() and combineStatistics(): uses the moving statistics.
kj::Own<BatchTask> takeMoving(const Norm& norm);
kj::Own<Task> normalise(const Norm& norm, Place y, Place out);
kj::Own<Task> reduceGradient(const Norm& norm, Place y, Place gradient);
kj::Own<BatchTask> combineGradient(const Norm& norm);
// Writes the gradients of gamma and beta into the flat array.
kj::Own<BatchTask> exportGradient(const Norm& norm);
kj::Own<Task> normaliseBackward(const Norm& norm, Place y, Place gradient, Place dy, Write write);

}  // namespace nn::cpu

// nn/cpu/norm.h: a batch norm and the tasks that take its statistics, apply it and go back through
// it.
#pragma once

#include "nn/cpu/tasks.h"

namespace nn::cpu {

// A batch norm, with the ReLU or GELU that follows it if there is one: its arrays in the flat ones,
// and its own.
struct Norm {
  Extent extent;
  uint images;  // of a batch
  BatchNorm op;
  After after;
  const float* gamma;
  const float* beta;
  float* gammaGradient;
  float* betaGradient;
  float* movingMean;
  float* movingVariance;
  // Of the convolution before it, which leaves it out because it cancels: moves the moving mean.
  // Null if none.
  const float* inertBias;
  Buffer* channels;  // eight arrays
  Buffer* statisticsPartials;
  Buffer* gradientPartials;

  static constexpr uint ARRAYS = 8;
  Channels channelsIn(const Addresses& memory) const;
};

// Norms outlive their tasks. `y` is the norm's input, `gradient` that of its output; each may lie
// in a view.
kj::Own<Task> takeStatistics(const Norm& norm, Place y);
kj::Own<BatchTask> combineStatistics(const Norm& norm);
// In validation, in place of both.
kj::Own<BatchTask> takeMoving(const Norm& norm);
kj::Own<Task> normalise(const Norm& norm, Place y, Place out);
kj::Own<Task> reduceGradient(const Norm& norm, Place y, Place gradient);
kj::Own<BatchTask> combineGradient(const Norm& norm);
// Writes the gradients of gamma and beta into the flat array.
kj::Own<BatchTask> exportGradient(const Norm& norm);
kj::Own<Task> normaliseBackward(const Norm& norm, Place y, Place gradient, Place dy, Write write);

}  // namespace nn::cpu

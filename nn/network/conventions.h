// nn/network/conventions.h: defaults in which training systems differ, one named set for a whole
// network.
#pragma once

#include <kj/array.h>

#include "nn/network/ops.h"

namespace nn {

// The behaviour of layers and optimizers whose own keys do not specify it.
struct Conventions {
  const char* name;  // mxnet
  const char* doc;
  float batchNormEpsilon;
  float batchNormMomentum;
  float movingMeanStart;
  float movingVarianceStart;
  bool fixedGamma;
  Pool::Rounding poolRounding;
  // What the learning rate multiplies. True: the gradient that enters the momentum (v ← momentum ·
  // v - rate · g; w ← w + v). False: the momentum (v ← momentum · v + g; w ← w - rate · v).
  bool learningRateInsideMomentum;
  // Where epsilon is added. True: adam adds it to the root of its second moment after the bias
  // correction, and rmsprop adds it after it has taken the root. False: adam adds it before the
  // bias correction, and rmsprop before it takes the root.
  bool epsilonComesLast;
  // Whether xavier's fan out of a convolution is filters × the kernel's area, or the filters alone.
  bool fanOutHasKernelArea;
  // Whether weight decay applies to all arrays, or to weights and gammas only.
  bool decayOnAllArrays;
};
extern const kj::ArrayPtr<const Conventions> CONVENTIONS;

}  // namespace nn

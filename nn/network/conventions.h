// nn/network/conventions.h: where training systems differ in the same layer: one named set for a
// whole network.
#pragma once

#include <kj/array.h>

#include "nn/network/ops.h"

namespace nn {

// What a layer or an optimizer does when its own keys do not say.
struct Conventions {
  const char* name;  // mxnet
  const char* doc;
  float batchNormEpsilon;
  float batchNormMomentum;
  float movingMeanStart;
  float movingVarianceStart;
  bool fixedGamma;
  Pool::Rounding poolRounding;
  // Learning rate inside the momentum (mom ← m·mom - lr·g; w ← w + mom), or outside (mom ← m·mom +
  // g; w ← w - lr·mom).
  bool learningRateInsideMomentum;
  // Adam and RMSprop: epsilon is added to the root that a step is divided by as it ends up (adam:
  // with the bias corrected), or before that (adam: to the uncorrected root; rmsprop: below it).
  bool epsilonComesLast;
  // xavier's fan out of a convolution: filters × the kernel's area, or the filters alone.
  bool fanOutHasKernelArea;
  // Weight decay on all arrays, or on weights and gammas only.
  bool decayOnAllArrays;
};
extern const kj::ArrayPtr<const Conventions> CONVENTIONS;

}  // namespace nn

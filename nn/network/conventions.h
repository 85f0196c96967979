// nn/network/conventions.h: defaults in which training systems differ, one named set for a whole
// network.
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
  // Where Adam and RMSprop add epsilon. True: to the final root that divides the step (Adam: the
  // root with corrected bias). False: earlier (Adam: to the uncorrected root; RMSprop: below the
  // root).
  bool epsilonComesLast;
  // Whether xavier's fan out of a convolution is filters × the kernel's area, or the filters alone.
  bool fanOutHasKernelArea;
  // Whether weight decay applies to all arrays, or to weights and gammas only.
  bool decayOnAllArrays;
};
extern const kj::ArrayPtr<const Conventions> CONVENTIONS;

}  // namespace nn

// nn/cpu/fold.h: folds a batch norm into the convolution before it, for validation.
#pragma once

#include "nn/cpu/plan_builder.h"

namespace nn::cpu {

// With s = gamma / sqrt(moving variance + epsilon) of each filter, writes the weights and bias that
// do the work of convolution and batch norm together:
//   weight' = s · weight, bias' = s · (bias - moving mean) + beta
// They go in plain order to the buffer in the storage of `convolution`, the bias behind the
// weights. Lane `turn` modulo the number of lanes does the work.
kj::Own<BatchTask> fold(
    PlanBuilder& builder, const StagedUnit& convolution, const Node& norm, uint turn);

}  // namespace nn::cpu

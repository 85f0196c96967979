// nn/cpu/fold.h: a batch norm folded into the convolution before it, for validation.
#pragma once

#include "nn/cpu/plan_builder.h"

namespace nn::cpu {

// With s = gamma / sqrt(moving variance + epsilon) of each filter, writes what convolution and
// batch norm together come to:
//   weight' = s · weight, bias' = s · (bias - moving mean) + beta
// in plain order to the buffer in the storage of `convolution`, the bias behind the weights. Lane
// `turn` modulo the lanes does it.
kj::Own<BatchTask> fold(
    PlanBuilder& builder, const StagedUnit& convolution, const Node& norm, uint turn);

}  // namespace nn::cpu

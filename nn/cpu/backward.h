// nn/cpu/backward.h: the backward tasks of a plan.
#pragma once

#include "nn/cpu/plan_builder.h"

namespace nn::cpu {

// Appends the tasks that make the gradients of all values and parameters that have one, after
// addForward().
void addBackward(PlanBuilder& builder);

}  // namespace nn::cpu

// nn/cpu/backward.h: the backward tasks of a plan.
#pragma once

#include "nn/cpu/plan_builder.h"

namespace nn::cpu {

// Appends the tasks that compute the gradients of all values and parameters that have one. Call it
// after addForward().
void addBackward(PlanBuilder& builder);

}  // namespace nn::cpu

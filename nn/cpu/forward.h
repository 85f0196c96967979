// nn/cpu/forward.h: the forward tasks of a plan.
#pragma once

#include "nn/cpu/plan_builder.h"

namespace nn::cpu {

// Appends the tasks that compute the value of each unit, in the order of the units. Also makes what
// they share with the backward tasks: buffers, convolutions, dense layers and norms. `engine` must
// outlive the plan.
void addForward(PlanBuilder& builder, dnnl_engine_t engine);

}  // namespace nn::cpu

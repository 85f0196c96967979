// nn/cpu/forward.h: the forward tasks of a plan.
#pragma once

#include "nn/cpu/plan_builder.h"

namespace nn::cpu {

// Appends the tasks that make each unit's value, in the order of the units, and makes what they
// share with the backward tasks: buffers, convolutions, dense layers, norms. `engine` outlives the
// plan.
void addForward(PlanBuilder& builder, dnnl_engine_t engine);

}  // namespace nn::cpu

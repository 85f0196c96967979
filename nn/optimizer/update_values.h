// nn/optimizer/update_values.h: updates arrays on the CPU, value by value.
#pragma once

#include <stddef.h>

#include "nn/optimizer/value_rule.h"

namespace nn {

// All arrays have `size` floats, and `state` has rule.states times as many. `next` and `state` must
// overlap nothing else.
struct ValueArrays {
  size_t size;
  const float* gradient;
  const float* current;
  float* next;
  float* state;
};

// Sets each value of `next` to the result of `rule` for the value in `current`. Uses the
// instruction set of the machine at hand, which does not change the bits. Does not apply the
// lookahead. rule.kind must not be KEEP.
void updateValues(const ValueRule& rule, const ValueArrays& arrays);

}  // namespace nn

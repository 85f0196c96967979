// nn/reference/reference.h: the oracle as a backend: a graph run node by node in double.
#pragma once

#include "nn/program.h"

namespace nn {

// Values and sums are double; parameters, gradients and statistics are rounded to float32 at their
// arrays. One thread whatever the options say.
extern const Backend REFERENCE;

}  // namespace nn

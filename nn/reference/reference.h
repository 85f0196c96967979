// nn/reference/reference.h: the reference implementation as a backend. It runs a graph node by node
// in double.
#pragma once

#include "nn/program.h"

namespace nn {

// Values and sums are double. Parameters, gradients and statistics are rounded to float32 in their
// arrays. Uses one thread, whatever the options say.
extern const Backend REFERENCE;

}  // namespace nn

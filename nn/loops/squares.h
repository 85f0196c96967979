// nn/loops/squares.h: the length of an array, the same on every instruction set.
#pragma once

#include <cstddef>

namespace nn {

// The sum of the squares of `size` floats, in double. Element i belongs to partial sum i mod 16,
// and these are added in order at the end: the bits do not depend on the machine.
double sumOfSquares(const float* values, size_t size);

}  // namespace nn

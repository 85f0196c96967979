// nn/loops/squares.h: a sum of squares whose bits are the same on every instruction set.
#pragma once

#include <cstddef>

namespace nn {

// Returns the sum of the squares of `size` floats, in double. Element i belongs to partial sum
// i mod 16. The partial sums are added in order at the end, so the bits do not depend on the
// machine.
double sumOfSquares(const float* values, size_t size);

}  // namespace nn

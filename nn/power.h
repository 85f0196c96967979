// nn/power.h: powers with whole exponents.
#pragma once

#include <cstdint>

namespace nn {

// base^exponent by squaring: plain multiplications give the same bits with every C library.
inline double power(double base, uint64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2, base *= base) {
    if (exponent % 2 == 1) result *= base;
  }
  return result;
}

}  // namespace nn

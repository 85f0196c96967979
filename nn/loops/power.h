// nn/loops/power.h: powers whose bits are the same on every machine.
#pragma once

#include <cmath>
#include <cstdint>

namespace nn {

// Returns base^exponent, by squaring. Plain multiplications give the same bits with every C
// library.
inline double power(double base, uint64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2, base *= base) {
    if (exponent % 2 == 1) result *= base;
  }
  return result;
}

// Returns base^exponent, where neither is below 0. Uses power() for the whole part of the exponent,
// and one more square root for each binary digit after the point. IEEE 754 defines the rounding of
// square roots, whereas pow() differs between machines.
inline double realPower(double base, double exponent) {
  double whole = std::floor(exponent);
  double result = power(base, uint64_t(whole));
  double root = base;
  for (double rest = exponent - whole; rest > 0;) {
    root = std::sqrt(root);
    rest *= 2;
    if (rest >= 1) {
      result *= root;
      rest -= 1;
    }
  }
  return result;
}

}  // namespace nn

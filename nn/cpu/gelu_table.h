// nn/cpu/gelu_table.h: the standard normal distribution and the slope of GELU in a few
// instructions, as exactly as values that are stored as bfloat16 need them.
#pragma once

#include <stddef.h>

namespace nn::cpu {
// Files that include this header are compiled for different instruction sets. The anonymous
// namespace keeps the linker from using one file's code in another file.
namespace {

// A function f(x) for x ≥ 0, as one parabola per interval: f((i + d) / PER_UNIT) is about
// c[0][i] + d·(c[1][i] + d·c[2][i]) for d in [0, 1). In the last interval, f counts as 1.
//
// The compiler computes the table, so all machines have the same bits.
struct alignas(64) GeluTable {
  static constexpr size_t COUNT = 32, LAST = COUNT - 1, PER_UNIT = 6;
  float c[3][COUNT];
};

// e^x for x ≥ 0.
constexpr double exponentialOf(double x) {
  double sum = 1, term = 1;
  for (int n = 1; n < 100; n++) sum += term *= x / n;
  return sum;
}

constexpr double normalHeight(double x) {
  constexpr double ROOT_OF_TWO_PI = 2.50662827463100050242;
  return 1 / (exponentialOf(x * x / 2) * ROOT_OF_TWO_PI);
}

// The probability that a normal value lies below x ≥ 0, by Marsaglia's series (2004, Evaluating the
// normal distribution, section 3). All of its terms are positive, so no digits are lost.
constexpr double normalBelow(double x) {
  double sum = x, term = x;
  for (int n = 3; n < 200; n += 2) sum += term *= x * x / n;
  return 0.5 + normalHeight(x) * sum;
}

constexpr double geluSlopeOf(double x) {
  return normalBelow(x) + x * normalHeight(x);
}

// Each parabola meets f at the zeros of the third Chebyshev polynomial, which keeps the largest
// error small.
constexpr GeluTable tableOf(double (*f)(double)) {
  constexpr double D[3] = {0.06698729810778066, 0.5, 0.9330127018922193};
  GeluTable table = {};
  for (size_t i = 0; i < GeluTable::LAST; i++) {
    double at[3] = {};
    for (size_t k = 0; k < 3; k++) at[k] = f((double(i) + D[k]) / GeluTable::PER_UNIT);
    double first = (at[1] - at[0]) / (D[1] - D[0]);
    double second = ((at[2] - at[1]) / (D[2] - D[1]) - first) / (D[2] - D[0]);
    table.c[0][i] = float(at[0] - D[0] * (first - D[1] * second));
    table.c[1][i] = float(first - (D[0] + D[1]) * second);
    table.c[2][i] = float(second);
  }
  table.c[0][GeluTable::LAST] = 1;
  return table;
}

constexpr GeluTable NORMAL_TABLE = tableOf(normalBelow);
constexpr GeluTable GELU_SLOPE_TABLE = tableOf(geluSlopeOf);

}  // namespace
}  // namespace nn::cpu

#include "nn/squares.h"

namespace nn {

// The compiler makes the loop three times and picks one when the program starts.
__attribute__((target_clones("default", "avx2", "avx512f"))) double sumOfSquares(
    const float* values, size_t size) {
  constexpr size_t LANES = 16;
  double sums[LANES] = {};
  size_t i = 0;
  for (; i + LANES <= size; i += LANES) {
    for (size_t lane = 0; lane < LANES; ++lane) {
      double value = values[i + lane];
      sums[lane] += value * value;
    }
  }
  for (size_t lane = 0; i + lane < size; ++lane) {
    double value = values[i + lane];
    sums[lane] += value * value;
  }
  double total = 0;
  for (double sum: sums) total += sum;
  return total;
}

}  // namespace nn

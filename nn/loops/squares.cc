#include "nn/loops/squares.h"

#include "configs/language/each_instruction_set.h"

namespace nn {

EACH_INSTRUCTION_SET double sumOfSquares(const float* values, size_t size) {
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

// nn/optimizer/adam_loop.h: the loop of Adam, in the instruction set of the machine at hand.
#pragma once

#include <cstddef>

namespace nn {

// What the loop needs. All arrays have `size` floats; `next`, `mean` and `square` overlap nothing
// else.
struct AdamLoop {
  size_t size;
  const float* gradient;
  const float* current;
  float* next;
  float* mean;    // m of the paper: the moving mean of g
  float* square;  // v: that of g²
  float rescale;
  float learningRate;  // with both corrections of the bias
  float beta1;
  float rest1;  // 1 - beta1, subtracted in double: near 1 a float of beta1 has too few digits
  float beta2;
  float rest2;  // 1 - beta2
  float epsilon;
  float decay;
  float shrink;  // share of a value that goes beside the gradient
};

// With g = rescale · gradient + decay · current, element by element in float32, every operation
// rounded, so that the bits do not depend on the instruction set:
//   mean ← beta1 · mean + rest1 · g
//   square ← beta2 · square + rest2 · g²
//   next ← current - shrink · current - learningRate · mean / (sqrt(square) + epsilon)
void adam(const AdamLoop& loop);

}  // namespace nn

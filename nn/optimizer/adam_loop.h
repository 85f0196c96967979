// nn/optimizer/adam_loop.h: the loop of Adam, in the instruction set of the machine at hand.
#pragma once

#include <cstddef>

namespace nn {

// The arguments of the loop. All arrays have `size` floats. `next`, `mean` and `square` must
// overlap nothing else.
struct AdamLoop {
  size_t size;
  const float* gradient;
  const float* current;
  float* next;
  float* mean;    // m of the paper: the moving mean of g
  float* square;  // v: that of g²
  float rescale;
  float learningRate;  // including both bias corrections
  float beta1;
  float rest1;  // 1 - beta1, subtracted in double: near 1 a float of beta1 has too few digits
  float beta2;
  float rest2;  // 1 - beta2
  float epsilon;
  float decay;
  float shrink;  // the share of a value that decoupled decay takes away
};

// Let g = rescale · gradient + decay · current. Element by element in float32, with every operation
// rounded, so that the bits do not depend on the instruction set:
//   mean ← beta1 · mean + rest1 · g
//   square ← beta2 · square + rest2 · g²
//   next ← current - shrink · current - learningRate · mean / (sqrt(square) + epsilon)
void adam(const AdamLoop& loop);

}  // namespace nn

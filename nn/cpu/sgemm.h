// nn/cpu/sgemm.h: oneDNN's matrix product.
#pragma once

#include <stddef.h>

namespace nn::cpu {

// A matrix row by row, rows `rowStride` apart; 'T' if it is stored transposed, else 'N'.
struct Matrix {
  char transposed;
  const float* data;
  size_t rowStride;
};

// C = A·B + beta·C: C is M×N with rows `ldc` apart, A is M×K, B is K×N. With beta 0 what was in C
// does not matter. On as many threads as OpenMP gives the caller.
void multiply(size_t M, size_t N, size_t K, Matrix a, Matrix b, float beta, float* c, size_t ldc);

}  // namespace nn::cpu

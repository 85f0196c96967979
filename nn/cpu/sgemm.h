// nn/cpu/sgemm.h: oneDNN's matrix product.
#pragma once

#include <stddef.h>

namespace nn::cpu {

// A matrix of floats in memory, row by row.
struct Matrix {
  char transposed;  // 'T' if `data` holds the transposed matrix, else 'N'
  const float* data;
  size_t rowStride;  // floats from one row of `data` to the next
};

// C = A·B + beta·C, where C is M×N with rows `ldc` apart, A is M×K and B is K×N. With beta 0 C is
// not read. Uses as many threads as OpenMP gives the caller.
void multiply(size_t M, size_t N, size_t K, Matrix a, Matrix b, float beta, float* c, size_t ldc);

}  // namespace nn::cpu

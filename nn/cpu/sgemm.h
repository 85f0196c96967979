// nn/cpu/sgemm.h: oneDNN's matrix product.
#pragma once

#include <stddef.h>

namespace nn::cpu {

// A matrix in rows, `rowStride` floats apart. 'T' if it is stored transposed, else 'N'.
struct Matrix {
  char transposed;
  const float* data;
  size_t rowStride;
};

// C = A·B + beta·C, where C is M×N with rows `ldc` apart, A is M×K and B is K×N. With beta 0 C is
// not read. Uses as many threads as OpenMP gives the caller.
void multiply(size_t M, size_t N, size_t K, Matrix a, Matrix b, float beta, float* c, size_t ldc);

}  // namespace nn::cpu

#include "nn/cuda/scale.h"

#include <cuda_runtime.h>

namespace nn::cuda {

namespace {

constexpr unsigned THREADS = 256;

__global__ void scaleKernel(float* values, float by, size_t count) {
  size_t i = size_t(blockIdx.x) * THREADS + threadIdx.x;
  if (i < count) values[i] *= by;
}

}  // namespace

void scale(float* values, float by, size_t count, CUstream_st* stream) {
  auto blocks = unsigned((count + THREADS - 1) / THREADS);
  if (blocks > 0) scaleKernel<<<blocks, THREADS, 0, stream>>>(values, by, count);
}

}  // namespace nn::cuda

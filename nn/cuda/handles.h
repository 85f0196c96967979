// nn/cuda/handles.h: the libraries as one device uses them.
#pragma once

#include <cublasLt.h>
#include <cudnn.h>

namespace nn::cuda {

// All work goes to `stream`, to which `cudnn` is set.
struct Handles {
  cudnnHandle_t cudnn;
  cublasLtHandle_t cublasLt;
  cudaStream_t stream;
};

}  // namespace nn::cuda

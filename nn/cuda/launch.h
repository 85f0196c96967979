// nn/cuda/launch.h: the kernels on a GPU.
#pragma once

#include "nn/cuda/kernels.h"

namespace nn::cuda {

// Asks the current GPU to run `kernel` in the order of `stream`, a cudaStream_t. Addresses are the
// GPU's. Comes back before the work is done; what fails, cudaGetLastError() knows.
void launch(const Kernel& kernel, void* stream);

}  // namespace nn::cuda

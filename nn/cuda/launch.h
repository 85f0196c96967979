// nn/cuda/launch.h: launches the kernels on a GPU.
#pragma once

#include "nn/cuda/kernels.h"

namespace nn::cuda {

// Asks the current GPU to run `kernel` in the order of `stream`, a cudaStream_t. Addresses are the
// GPU's. Returns before the work is done. cudaGetLastError() returns whether the launch failed.
void launch(const Kernel& kernel, void* stream);

}  // namespace nn::cuda

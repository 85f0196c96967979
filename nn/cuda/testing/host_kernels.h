// nn/cuda/testing/host_kernels.h: runs the kernels on the host, block after block.
#pragma once

#include "nn/cuda/block.h"
#include "nn/cuda/kernels.h"

namespace nn::cuda {

// Addresses are those of the host. Values differ from a GPU's only in the rounding of functions,
// and of products that a GPU adds in the same instruction.
void runOnHost(const Kernel& kernel, Order order = Order::ASCENDING);

}  // namespace nn::cuda

// nn/cuda/testing/host_kernels.h: runs the kernels on the host, block after block.
#pragma once

#include "nn/cuda/block.h"
#include "nn/cuda/kernels.h"

namespace nn::cuda {

// Addresses are the host's. Values are those of a GPU but for the rounding of products that it
// adds at once, and of functions.
void runOnHost(const Kernel& kernel, Order order = Order::ASCENDING);

}  // namespace nn::cuda

// nn/cuda/testing/host_convolution.h: the convolutions of a device library, as plain loops.
#pragma once

#include "nn/cuda/device.h"

namespace nn::cuda {

// Operands as for Device::run(), in the host's memory. Sums in double.
void convolveOnHost(
    const ConvolutionProblem& shape, Direction direction, const void* a, const void* b, void* c);

}  // namespace nn::cuda

// nn/cpu/winograd_convolution.h: convolutions with 3×3 and 5×5 windows, by Winograd's transforms
// and our own matrix products.
#pragma once

#include "nn/cpu/convolution.h"

namespace nn::cpu {

// Whether Winograd can run a convolution: 3×3 or 5×5, stride 1, padded by at most half a window.
bool isWinogradShape(const ConvolutionShape& shape);

// Returns the bytes of the transformed weights. The convolution holds them twice, and once more per
// lane for the gradient.
uint64_t winogradWeights_bytes(const ConvolutionShape& shape);

// Reads and writes blocked images of floats or bfloat16s. Calculates with floats.
kj::Own<Convolution> makeWinogradConvolution(ConvolutionShape shape, ConvolutionArrays arrays);

}  // namespace nn::cpu

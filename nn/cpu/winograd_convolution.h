// nn/cpu/winograd_convolution.h: a convolution with 3×3 windows by Winograd's transforms and our
// own matrix products.
#pragma once

#include "nn/cpu/convolution.h"

namespace nn::cpu {

// Whether it can run: 3×3, steps of 1, padded by at most 1.
bool isWinogradShape(const ConvolutionShape& shape);

// Of the transformed weights, which it has twice, and once more for the gradient of each lane.
uint64_t winogradWeights_bytes(const ConvolutionShape& shape);

// Blocked images in all directions, of floats or bfloat16; what is calculated with are floats.
kj::Own<Convolution> makeWinogradConvolution(ConvolutionShape shape, ConvolutionArrays arrays);

}  // namespace nn::cpu

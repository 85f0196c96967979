// nn/cpu/gemm_convolution.h: convolutions of any shape as matrix products.
#pragma once

#include "nn/cpu/convolution.h"

namespace nn::cpu {

// Gathers the windows of a strip of pixels as rows of a matrix in cache, and multiplies the matrix
// with the weights. This needs copies, but saves the arithmetic on the padding of channels.
kj::Own<Convolution> makeGemmConvolution(ConvolutionShape shape, ConvolutionArrays arrays);

}  // namespace nn::cpu

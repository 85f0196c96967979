// nn/cpu/plane_convolution.h: convolutions of a network's input images.
#pragma once

#include "nn/cpu/convolution.h"

namespace nn::cpu {

// Reads plain images of floats, and writes blocked floats. Vectors hold filters, so channels of the
// image need no padding. Does not compute the gradient of the images.
kj::Own<Convolution> makePlaneConvolution(ConvolutionShape shape, ConvolutionArrays arrays);

}  // namespace nn::cpu

// nn/cpu/amx_convolution.h: convolutions and dense layers of bfloat16s as products of AMX tiles.
#pragma once

#include "nn/cpu/convolution.h"

namespace nn::cpu {

// Images come in groups, see nn/cpu/amx.h. A dense layer is a convolution whose window is the whole
// image. `shape.element` must be BFLOAT16. The output and the gradient of the input may be floats.
//
// The pixels of a batch come as plain floats if they have few channels. Each window then becomes
// the channels of one pixel of a 1×1 convolution.
//
// One thread and two compute the same bits: the gradient of the weights has at least one sum for
// each half of the groups.
kj::Own<Convolution> makeAmxConvolution(
    ConvolutionShape shape, ConvolutionArrays arrays, const AmxLoops& loops);

}  // namespace nn::cpu

// nn/cpu/choose_convolution.h: which code runs a convolution.
#pragma once

#include "nn/cpu/convolution.h"

namespace nn::cpu {

// By the shape and the instruction set alone, never by a timing: the bits depend on it. Everything
// is made for one thread, so call it and prepare the tasks with omp_set_num_threads(1). `engine`
// outlives it, and is that of the streams it runs on.
kj::Own<Convolution> makeConvolution(
    ConvolutionShape shape, ConvolutionArrays arrays, dnnl_engine_t engine);

}  // namespace nn::cpu

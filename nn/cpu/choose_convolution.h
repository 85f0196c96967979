// nn/cpu/choose_convolution.h: chooses the code that runs a convolution.
#pragma once

#include "nn/cpu/convolution.h"

namespace nn::cpu {

// Chooses by shape and instruction set only, never by a measurement, because the bits depend on the
// choice. Everything is made for one thread, so call it and prepare the tasks with
// omp_set_num_threads(1). `engine` must outlive the result, and must be that of the streams that
// run it.
kj::Own<Convolution> makeConvolution(
    ConvolutionShape shape, ConvolutionArrays arrays, dnnl_engine_t engine);

}  // namespace nn::cpu

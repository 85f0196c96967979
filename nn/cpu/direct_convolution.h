// nn/cpu/direct_convolution.h: convolutions by oneDNN's primitives.
#pragma once

#include "nn/cpu/convolution.h"

namespace nn::cpu {

// The algorithm is Winograd F(4×4, 3×3) (Lavin and Gray 2015) for 3×3 of stride 1 with more than
// three input channels on AVX-512, and direct otherwise. Null if oneDNN 2.6 has no fast code.
//
// Every primitive is made for one thread and one number of images. oneDNN hangs if a primitive is
// executed with another number of threads than it was made with. So call this function and prepare
// its tasks with omp_set_num_threads(1).
kj::Maybe<kj::Own<Convolution>> makeDirectConvolution(
    ConvolutionShape shape, ConvolutionArrays arrays, dnnl_engine_t engine);

}  // namespace nn::cpu

// nn/cuda/scale.h: an array times a number.
#pragma once

#include <stddef.h>

struct CUstream_st;  // what cudaStream_t points to

namespace nn::cuda {

// values[i] *= by for the `count` floats in the GPU's memory, in the order of `stream`.
void scale(float* values, float by, size_t count, CUstream_st* stream);

}  // namespace nn::cuda

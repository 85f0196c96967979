// Compiled for AVX-512 F, BW, VL and DQ.
#include "nn/cpu/kernels_body.h"
#include "nn/cpu/vector_avx512.h"

namespace nn::cpu {

constinit const Kernels AVX512_KERNELS = kernelsOf<Avx512>(&AVX512_BFLOAT16_KERNELS);

}  // namespace nn::cpu

// Compiled for AVX-512 F, BW, VL, DQ and BF16.
#include "nn/cpu/kernels_body.h"
#include "nn/cpu/vector_avx512_bf16.h"

namespace nn::cpu {
constinit const ValueKernels AVX512_BFLOAT16_KERNELS = Loops<Avx512Bf16, Bfloat16>::TABLE;

}  // namespace nn::cpu

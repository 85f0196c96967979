// Compiled for AVX-512 F, BW, VL, DQ and BF16.
#include "nn/cpu/kernels_groups.h"
#include "nn/cpu/vector_avx512_bf16.h"

namespace nn::cpu {
namespace {
constinit const ValueKernels BFLOAT16S = GroupLoops<Avx512Bf16, Bfloat16>::TABLE;
}

constinit const Kernels AMX_KERNELS = groupKernelsOf<Avx512>(&BFLOAT16S, &AMX_LOOPS);
constinit const Kernels EMULATED_AMX_KERNELS =
    groupKernelsOf<Avx512>(&BFLOAT16S, &EMULATED_AMX_LOOPS);

}  // namespace nn::cpu

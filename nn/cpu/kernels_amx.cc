// Compiled for AVX-512 F, BW, VL, DQ and BF16.
#include "nn/cpu/kernels_groups.h"
#include "nn/cpu/vector_avx512_bf16.h"

namespace nn::cpu {
namespace {
constinit const ValueKernels OF_16 = GroupLoops<Avx512Bf16, Bfloat16, 16>::TABLE;
constinit const ValueKernels OF_32 = GroupLoops<Avx512Bf16, Bfloat16, 32>::TABLE;
}  // namespace

constinit const Kernels AMX_KERNELS_16 = groupKernelsOf<Avx512, 16>(&OF_16, &AMX_LOOPS_16);
constinit const Kernels AMX_KERNELS_32 = groupKernelsOf<Avx512, 32>(&OF_32, &AMX_LOOPS_32);
constinit const Kernels EMULATED_AMX_KERNELS_16 =
    groupKernelsOf<Avx512, 16>(&OF_16, &EMULATED_AMX_LOOPS_16);
constinit const Kernels EMULATED_AMX_KERNELS_32 =
    groupKernelsOf<Avx512, 32>(&OF_32, &EMULATED_AMX_LOOPS_32);

}  // namespace nn::cpu

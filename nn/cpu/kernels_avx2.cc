// Compiled for AVX2 and FMA.
#include "nn/cpu/kernels_body.h"
#include "nn/cpu/vector_avx2.h"

namespace nn::cpu {

constinit const Kernels AVX2_KERNELS = kernelsOf<Avx2>(nullptr);

}  // namespace nn::cpu

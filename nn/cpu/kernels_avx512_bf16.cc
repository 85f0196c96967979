// Compiled for AVX-512 F, BW, VL, DQ and BF16.
#include "nn/cpu/kernels_body.h"
#include "nn/cpu/vector_avx512.h"

namespace nn::cpu {
namespace {

struct Avx512Bf16: Avx512 {
  using Avx512::load;
  using Avx512::store;

  static Vector load(const BFloat16* p) {
    __m512i halves = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(halves, 16));
  }
  // Rounds to nearest, ties to even; what is below 2^-126 becomes 0.
  static void store(BFloat16* p, Vector v) {
    _mm256_storeu_si256((__m256i*)p, (__m256i)_mm512_cvtneps_pbh(v));
  }
};

}  // namespace

constinit const ValueKernels AVX512_BFLOAT16_KERNELS = Loops<Avx512Bf16, BFloat16>::TABLE;

}  // namespace nn::cpu

// Compiled for AVX-512 F, BW, VL, DQ and BF16.
#include "nn/cpu/vector_avx512_bf16.h"
#include "nn/cpu/winograd_images.h"

namespace nn::cpu {
namespace {

struct Avx512Bf16Patches: Avx512Bf16 {
  static Mask mask(bool all) { return Mask(-int(all)); }
  // Elements whose mask is off are 0, and are not read.
  static Vector loadIf(Mask mask, const Bfloat16* p) {
    __m512i halves = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(halves, 16));
  }
};

}  // namespace

constinit const WinogradImages AVX512_BF16_WINOGRAD_IMAGES[] = {
    WinogradImageLoops<Avx512Bf16Patches, Bfloat16, 3>::TABLE,
    WinogradImageLoops<Avx512Bf16Patches, Bfloat16, 5>::TABLE};

}  // namespace nn::cpu

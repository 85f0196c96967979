// Compiled for AVX2 and FMA.
#include "nn/cpu/vector_avx2.h"
#include "nn/cpu/winograd_images.h"
#include "nn/cpu/winograd_products.h"

namespace nn::cpu {
namespace {

struct Avx2Patches: Avx2 {
  using Mask = __m256i;  // all bits set, or none

  static Mask mask(bool all) { return _mm256_set1_epi32(-int(all)); }
  // Elements whose mask is off are 0, and are not read.
  static Vector loadIf(Mask mask, const float* p) { return _mm256_maskload_ps(p, mask); }
};

}  // namespace

constinit const Winograd AVX2_WINOGRAD[] = {
    WinogradProducts<Avx2, 3>::TABLE, WinogradProducts<Avx2, 5>::TABLE};
constinit const WinogradImages AVX2_WINOGRAD_IMAGES[] = {
    WinogradImageLoops<Avx2Patches, float, 3>::TABLE,
    WinogradImageLoops<Avx2Patches, float, 5>::TABLE};

}  // namespace nn::cpu

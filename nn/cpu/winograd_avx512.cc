// Compiled for AVX-512 F, BW, VL and DQ.
#include "nn/cpu/vector_avx512.h"
#include "nn/cpu/winograd_images.h"
#include "nn/cpu/winograd_products.h"

namespace nn::cpu {
namespace {

struct Avx512Patches: Avx512 {
  static Mask mask(bool all) { return Mask(-int(all)); }
  // Elements whose mask is off are 0, and are not read.
  static Vector loadIf(Mask mask, const float* p) { return _mm512_maskz_loadu_ps(mask, p); }
};

}  // namespace

constinit const Winograd AVX512_WINOGRAD[] = {
    WinogradProducts<Avx512, 3>::TABLE, WinogradProducts<Avx512, 5>::TABLE};
constinit const WinogradImages AVX512_WINOGRAD_IMAGES[] = {
    WinogradImageLoops<Avx512Patches, float, 3>::TABLE,
    WinogradImageLoops<Avx512Patches, float, 5>::TABLE};

}  // namespace nn::cpu

// nn/cpu/vector_avx512_bf16.h: vectors of 16 floats that lie in memory as bfloat16.
#pragma once

#include "nn/cpu/vector_avx512.h"
#include "nn/element.h"

namespace nn::cpu {
namespace {

struct Avx512Bf16: Avx512 {
  using Avx512::load;
  using Avx512::store;

  static Vector load(const Bfloat16* p) {
    __m512i halves = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(halves, 16));
  }
  // Rounds to nearest, ties to even; what is below 2^-126 becomes 0.
  static void store(Bfloat16* p, Vector v) {
    _mm256_storeu_si256((__m256i*)p, (__m256i)_mm512_cvtneps_pbh(v));
  }
};

}  // namespace
}  // namespace nn::cpu

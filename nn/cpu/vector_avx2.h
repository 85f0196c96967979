// nn/cpu/vector_avx2.h: vectors of 8 floats.
#pragma once

#include <immintrin.h>
#include <stdint.h>

namespace nn::cpu {
// Files that include this header are compiled for different instruction sets. The anonymous
// namespace keeps the linker from using one file's code in another file.
namespace {

struct Avx2 {
  static constexpr unsigned WIDTH = 8;
  using Vector = __m256;
  // The compiler provides operators (^, +, *, >>) for this type.
  typedef uint32_t Words __attribute__((vector_size(32)));
  using Mask = __m256;  // all bits of a lane set, or none

  static Vector zero() { return _mm256_setzero_ps(); }
  static Vector set(float x) { return _mm256_set1_ps(x); }
  static Vector load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, Vector v) { _mm256_storeu_ps(p, v); }
  static Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
  static Vector sub(Vector a, Vector b) { return _mm256_sub_ps(a, b); }
  static Vector mul(Vector a, Vector b) { return _mm256_mul_ps(a, b); }
  static Vector div(Vector a, Vector b) { return _mm256_div_ps(a, b); }
  // a·b + c, rounded once; negated: c - a·b.
  static Vector fma(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
  static Vector negatedFma(Vector a, Vector b, Vector c) { return _mm256_fnmadd_ps(a, b, c); }
  static Vector max(Vector a, Vector b) { return _mm256_max_ps(a, b); }
  static Vector min(Vector a, Vector b) { return _mm256_min_ps(a, b); }
  static Vector round(Vector a) { return _mm256_round_ps(a, 0); }
  static Vector powerOfTwo(Vector n) {
    __m256i e = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(e, 23));
  }
  // Exact for words below 2^24.
  static Vector number(Words w) { return _mm256_cvtepi32_ps((__m256i)w); }
  static Mask greater(Vector a, Vector b) { return _mm256_cmp_ps(a, b, _CMP_GT_OQ); }
  static Mask equal(Vector a, Vector b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
  static Vector select(Mask m, Vector yes, Vector no) { return _mm256_blendv_ps(no, yes, m); }
  static void storeIndex(uint16_t* p, Vector v) {
    __m256i wide = _mm256_cvtps_epi32(v);
    _mm_storeu_si128((__m128i*)p,
        _mm_packus_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1)));
  }
  static Vector loadIndex(const uint16_t* p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p)));
  }
};

}  // namespace
}  // namespace nn::cpu

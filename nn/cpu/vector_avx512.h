// nn/cpu/vector_avx512.h: vectors of 16 floats.
#pragma once

#include <immintrin.h>
#include <stdint.h>

namespace nn::cpu {
// Files that include this header are compiled for different instruction sets. The anonymous
// namespace keeps the linker from using one file's code in another file.
namespace {

struct Avx512 {
  static constexpr unsigned WIDTH = 16;
  using Vector = __m512;
  // The compiler provides operators (^, +, *, >>) for this type.
  typedef uint32_t Words __attribute__((vector_size(64)));
  using Mask = __mmask16;

  static Vector zero() { return _mm512_setzero_ps(); }
  static Vector set(float x) { return _mm512_set1_ps(x); }
  static Vector load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, Vector v) { _mm512_storeu_ps(p, v); }
  static Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
  static Vector sub(Vector a, Vector b) { return _mm512_sub_ps(a, b); }
  static Vector mul(Vector a, Vector b) { return _mm512_mul_ps(a, b); }
  static Vector div(Vector a, Vector b) { return _mm512_div_ps(a, b); }
  // a·b + c, rounded once; negated: c - a·b.
  static Vector fma(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
  static Vector negatedFma(Vector a, Vector b, Vector c) { return _mm512_fnmadd_ps(a, b, c); }
  static Vector max(Vector a, Vector b) { return _mm512_max_ps(a, b); }
  static Vector min(Vector a, Vector b) { return _mm512_min_ps(a, b); }
  static Vector round(Vector a) { return _mm512_roundscale_ps(a, 0); }
  static Vector powerOfTwo(Vector n) {
    __m512i e = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
    return _mm512_castsi512_ps(_mm512_slli_epi32(e, 23));
  }
  // Exact for words below 2^24.
  static Vector number(Words w) { return _mm512_cvtepi32_ps((__m512i)w); }
  static Mask greater(Vector a, Vector b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
  static Mask equal(Vector a, Vector b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
  static Vector select(Mask m, Vector yes, Vector no) { return _mm512_mask_mov_ps(no, m, yes); }
  static void storeIndex(uint16_t* p, Vector v) {
    __m256i words = _mm512_cvtusepi32_epi16(_mm512_cvtps_epi32(v));
    _mm256_storeu_si256((__m256i*)p, words);
  }
  static Vector loadIndex(const uint16_t* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p)));
  }
};

}  // namespace
}  // namespace nn::cpu

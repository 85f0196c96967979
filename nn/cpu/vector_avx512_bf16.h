// nn/cpu/vector_avx512_bf16.h: vectors of 16 floats that are stored in memory as bfloat16.
#pragma once

#include "nn/cpu/gelu_table.h"
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
  // Rounds to nearest, ties to even. Magnitudes below 2^-126 become 0.
  static void store(Bfloat16* p, Vector v) {
    _mm256_storeu_si256((__m256i*)p, (__m256i)_mm512_cvtneps_pbh(v));
  }

  // The probability that a normal value lies below x, within 2e-5, and the slope of GELU, within
  // 6e-5. For both, f(-x) = 1 - f(x). NaN stays NaN, because min returns its second argument then.
  static Vector normalBelow(Vector x) { return lookUp(NORMAL_TABLE, x); }
  static Vector geluSlope(Vector x) { return lookUp(GELU_SLOPE_TABLE, x); }

private:
  static Vector lookUp(const GeluTable& table, Vector x) {
    Vector place =
        min(set(float(GeluTable::LAST)), mul(_mm512_abs_ps(x), set(float(GeluTable::PER_UNIT))));
    __m512i i = _mm512_cvttps_epi32(place);
    Vector d = sub(place, _mm512_cvtepi32_ps(i));
    auto at = [&](const float* c) {
      return _mm512_permutex2var_ps(_mm512_load_ps(c), i, _mm512_load_ps(c + WIDTH));
    };
    Vector y = fma(fma(at(table.c[2]), d, at(table.c[1])), d, at(table.c[0]));
    return select(greater(zero(), x), sub(set(1.0f), y), y);
  }
};

}  // namespace
}  // namespace nn::cpu

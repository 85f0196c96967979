// nn/cpu/kernels_math.h: functions of vectors that several loops of nn/cpu/kernels_body.h use.
#pragma once

#include "nn/cpu/kernels.h"

namespace nn::cpu {

// `S` is a vector type's operations: WIDTH, Vector, Mask, load, store, …; see vector_avx2.h.
template <typename S>
struct VectorMath {
  using V = typename S::Vector;
  using M = typename S::Mask;
  static constexpr size_t B = S::WIDTH;

  // e^x = 2^n · (1 + rest), rest in [-0.3, 0.42].
  struct Power {
    V scale;  // 2^n
    V rest;
  };

  // For x in [-88, 88], after Cephes' expf: x = n·ln 2 + r, a polynomial in r for e^r - 1, and 2^n
  // by the exponent's bits.
  static Power power(V x) {
    V n = S::round(S::mul(x, S::set(1.44269504f)));
    V r = S::negatedFma(n, S::set(0.693359375f), x);
    r = S::fma(n, S::set(2.12194440e-4f), r);
    V p = S::set(1.9875691500e-4f);
    p = S::fma(p, r, S::set(1.3981999507e-3f));
    p = S::fma(p, r, S::set(8.3334519073e-3f));
    p = S::fma(p, r, S::set(4.1665795894e-2f));
    p = S::fma(p, r, S::set(1.6666665459e-1f));
    p = S::fma(p, r, S::set(5.0000001201e-1f));
    return {S::powerOfTwo(n), S::fma(p, S::mul(r, r), r)};
  }

  // e^x for x in [-88, 88].
  static V exponential(V x) {
    Power e = power(x);
    return S::mul(S::add(e.rest, S::set(1.0f)), e.scale);
  }

  // The standard normal distribution at x.
  struct Normal {
    V below;   // the probability of a value below x
    V height;  // e^(-x²/2)
  };

  // Uses that for z ≥ 0, e^(-z²) times a polynomial in 1 / (1 + p·z) is within 1.5e-7 of
  // 1 - erf(z) (Abramowitz and Stegun 1964, 7.1.26).
  static Normal normal(V x) {
    V size = S::max(x, S::sub(S::zero(), x));
    V t = S::div(S::set(1.0f), S::fma(size, S::set(0.3275911f * 0.70710678f), S::set(1.0f)));
    V p = S::set(1.061405429f);
    p = S::fma(p, t, S::set(-1.453152027f));
    p = S::fma(p, t, S::set(1.421413741f));
    p = S::fma(p, t, S::set(-0.284496736f));
    p = S::fma(p, t, S::set(0.254829592f));
    V height = exponential(S::max(S::set(-88.0f), S::mul(S::mul(x, x), S::set(-0.5f))));
    V beyond = S::mul(S::mul(S::mul(p, t), S::set(0.5f)), height);
    V below = S::select(S::greater(x, S::zero()), S::sub(S::set(1.0f), beyond), beyond);
    return {below, height};
  }

  // Values that are stored as bfloat16 have functions of their own: they need fewer digits.
  static V gelu(V x) {
    if constexpr (requires { S::normalBelow(x); }) {
      return S::mul(x, S::normalBelow(x));
    } else {
      return S::mul(x, normal(x).below);
    }
  }

  static V geluSlope(V x) {
    if constexpr (requires { S::geluSlope(x); }) {
      return S::geluSlope(x);
    } else {
      Normal at = normal(x);
      return S::fma(S::mul(x, at.height), S::set(0.39894228f), at.below);
    }
  }

  // Returns the values scaled up, and 0 for those that the mask takes away: see nn/dropout.h.
  static V kept(V x, typename S::Words index, const DropoutMask& mask) {
    auto h = index ^ mask.first;
    h = (h ^ h >> 16) * 0x7feb352du;
    h = (h ^ h >> 15) + mask.second;
    h *= 0x846ca68bu;
    h ^= h >> 16;
    M isDropped = S::greater(S::set(float(mask.threshold)), S::number(h >> 8));
    return S::select(isDropped, S::zero(), S::mul(x, S::set(mask.scale)));
  }

  // The words 0, step, 2·step, …
  static typename S::Words wordsBy(size_t step) {
    typename S::Words words;
    for (size_t lane = 0; lane < B; lane++) words[lane] = uint32_t(lane * step);
    return words;
  }
};

}  // namespace nn::cpu

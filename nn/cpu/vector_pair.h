// nn/cpu/vector_pair.h: two vectors as one of twice the width.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace nn::cpu {
// Files that include this header are compiled for different instruction sets. The anonymous
// namespace keeps the linker from using one file's code in another file.
namespace {

// `S` is a vector type's operations, see vector_avx512.h.
template <typename S>
struct Pair {
  static constexpr unsigned HALF = S::WIDTH;
  static constexpr unsigned WIDTH = 2 * HALF;
  struct Vector {
    typename S::Vector low, high;
  };
  struct Mask {
    typename S::Mask low, high;
  };
  using Words = typename S::Words;  // of kernels that have no pairs

  static Vector zero() { return {S::zero(), S::zero()}; }
  static Vector set(float x) { return {S::set(x), S::set(x)}; }
  template <typename E>
  static Vector load(const E* p) {
    return {S::load(p), S::load(p + HALF)};
  }
  template <typename E>
  static void store(E* p, Vector v) {
    S::store(p, v.low);
    S::store(p + HALF, v.high);
  }
  static Vector add(Vector a, Vector b) { return both(S::add, a, b); }
  static Vector sub(Vector a, Vector b) { return both(S::sub, a, b); }
  static Vector mul(Vector a, Vector b) { return both(S::mul, a, b); }
  static Vector div(Vector a, Vector b) { return both(S::div, a, b); }
  static Vector max(Vector a, Vector b) { return both(S::max, a, b); }
  static Vector min(Vector a, Vector b) { return both(S::min, a, b); }
  static Vector fma(Vector a, Vector b, Vector c) {
    return {S::fma(a.low, b.low, c.low), S::fma(a.high, b.high, c.high)};
  }
  static Vector negatedFma(Vector a, Vector b, Vector c) {
    return {S::negatedFma(a.low, b.low, c.low), S::negatedFma(a.high, b.high, c.high)};
  }
  // Only for vector types that have such functions.
  static Vector normalBelow(Vector x) requires(
      requires(typename S::Vector v) { S::normalBelow(v); }) {
    return {S::normalBelow(x.low), S::normalBelow(x.high)};
  }
  static Vector geluSlope(Vector x) requires(requires(typename S::Vector v) { S::geluSlope(v); }) {
    return {S::geluSlope(x.low), S::geluSlope(x.high)};
  }
  static Vector round(Vector a) { return {S::round(a.low), S::round(a.high)}; }
  static Vector powerOfTwo(Vector n) { return {S::powerOfTwo(n.low), S::powerOfTwo(n.high)}; }
  static Mask greater(Vector a, Vector b) {
    return {S::greater(a.low, b.low), S::greater(a.high, b.high)};
  }
  static Vector select(Mask m, Vector yes, Vector no) {
    return {S::select(m.low, yes.low, no.low), S::select(m.high, yes.high, no.high)};
  }

private:
  template <typename F>
  static Vector both(F f, Vector a, Vector b) {
    return {f(a.low, b.low), f(a.high, b.high)};
  }
};

}  // namespace
}  // namespace nn::cpu

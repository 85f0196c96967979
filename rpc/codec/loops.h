// rpc/codec/loops.h: loops between floats and what travels for them, for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rpc::codec {

// All give the same bits with every instruction set: each operation is rounded by itself, and sums
// are made of the same partial sums. Any count; arrays do not overlap.
struct Loops {
  const char* name;

  // To the nearest half, of two the even one. What is too large becomes infinite, a NaN the quiet
  // one without payload.
  void (*toFloat16)(const float* from, uint16_t* to, size_t count);
  void (*toBFloat16)(const float* from, uint16_t* to, size_t count);
  // Exact: to = from, or to += from.
  void (*fromFloat16)(const uint16_t* from, float* to, size_t count);
  void (*fromBFloat16)(const uint16_t* from, float* to, size_t count);
  void (*addFloat16)(const uint16_t* from, float* to, size_t count);
  void (*addBFloat16)(const uint16_t* from, float* to, size_t count);

  // MXNet's codes: with r = residual + gradient, r ≥ t is 11 and r ← r - t, r ≤ -t is 10 and
  // r ← r + t, all else is 00; residual ← r. A word of `words` has 16 codes, the first in the top
  // two bits of its first byte; unused ones are 00. False if some r is no finite number.
  bool (*toTwoBit)(
      const float* gradient, float* residual, uint32_t* words, size_t count, float threshold);
  // to = ±t or 0, or to += that.
  void (*fromTwoBit)(const uint32_t* words, float* to, size_t count, float threshold);
  void (*addTwoBit)(const uint32_t* words, float* to, size_t count, float threshold);

  // The bits of Seide et al. for one group: with r = residual + gradient, bit i is 1 where r ≥ 0 (a
  // zero with a minus sign counts as below).
  // means[0] is the mean of the r below 0, means[1] that of the others; 0 if there are none.
  // residual ← r - its mean. A word has 32 bits, the first value's the lowest; unused ones are 0.
  // Sums are made in double: 16 partial sums, then these in their order. False if some r is not a
  // finite number.
  bool (*toOneBit)(
      const float* gradient, float* residual, uint32_t* words, float* means, size_t count);
  // to = the mean that the bit names, or to += that.
  void (*fromOneBit)(const uint32_t* words, const float* means, float* to, size_t count);
  void (*addOneBit)(const uint32_t* words, const float* means, float* to, size_t count);

  // The sum of squares in double: 16 partial sums, then these in their order.
  double (*squares)(const float* values, size_t count);
  // u ← m·u + scale·g; v ← v + u.
  void (*accumulate)(
      const float* gradient, float* u, float* v, size_t count, float momentum, float scale);
  // v ← v + scale·g.
  void (*addScaled)(const float* gradient, float* v, size_t count, float scale);

  // The largest magnitudes of `columns` groups: group c has the values [r·columns + c] of all rows
  // r. Magnitudes are bits without their sign, which order as the numbers do; a NaN is above all.
  void (*maxima)(const float* values, size_t rows, size_t columns, uint32_t* magnitudes);
  // Where magnitudes are at least `least`, ascending. Returns how many; `positions` has room for
  // `count`.
  size_t (*collect)(const float* values, size_t count, uint32_t least, uint32_t* positions);

  // The whole numbers m with values[i] = m·unit. False if one is none between -most and most <
  // 2^20.
  bool (*toMultiples)(
      const float* values, float unit, int32_t most, int32_t* multiples, size_t count);
};

extern const Loops OLDEST_LOOPS;  // x86-64 without extensions
extern const Loops AVX2_LOOPS;
extern const Loops AVX512_LOOPS;  // F, BW, DQ and VL

// Those of them that this machine can run, ascending by speed, are [0, loopsHere()).
constexpr const Loops* ALL_LOOPS[] = {&OLDEST_LOOPS, &AVX2_LOOPS, &AVX512_LOOPS};
size_t loopsHere();
// The fastest of them.
const Loops& loops();

}  // namespace rpc::codec

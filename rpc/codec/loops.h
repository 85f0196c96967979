// rpc/codec/loops.h: loops that convert between floats and their encodings, for each instruction
// set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rpc::codec {

// All loops give the same bits with every instruction set: each operation is rounded by itself, and
// sums are made of the same partial sums. Any count is allowed. Arrays must not overlap.
struct Loops {
  const char* name;

  // Round to the nearest half, ties to even. Values that are too large become infinite. A NaN
  // becomes the quiet NaN without payload.
  void (*toFloat16)(const float* from, uint16_t* to, size_t count);
  void (*toBFloat16)(const float* from, uint16_t* to, size_t count);
  // Exact: to = from, or to += from.
  void (*fromFloat16)(const uint16_t* from, float* to, size_t count);
  void (*fromBFloat16)(const uint16_t* from, float* to, size_t count);
  void (*addFloat16)(const uint16_t* from, float* to, size_t count);
  void (*addBFloat16)(const uint16_t* from, float* to, size_t count);

  // MXNet's codes. With r = residual + gradient and the threshold t:
  // - if r ≥ t, the code is 11 and r ← r - t
  // - if r ≤ -t, the code is 10 and r ← r + t
  // - otherwise the code is 00
  // Then residual ← r. Each word of `words` has 16 codes, the first one in the top two bits of its
  // first byte. Unused codes are 00. Returns false if some r is not a finite number.
  bool (*toTwoBit)(
      const float* gradient, float* residual, uint32_t* words, size_t count, float threshold);
  // to = ±t or 0, or to += that.
  void (*fromTwoBit)(const uint32_t* words, float* to, size_t count, float threshold);
  void (*addTwoBit)(const uint32_t* words, float* to, size_t count, float threshold);

  // The bits of Seide et al. for one group. With r = residual + gradient, bit i is 1 if r ≥ 0 (a
  // zero with a minus sign counts as below 0). means[0] is the mean of the r below 0, and means[1]
  // the mean of the others. A mean of no values is 0. Then residual ← r - its mean. A word has 32
  // bits, and the first value has the lowest one. Unused bits are 0. Sums are made in double: first
  // 16 partial sums, then their sum in order. Returns false if some r is not a finite number.
  bool (*toOneBit)(
      const float* gradient, float* residual, uint32_t* words, float* means, size_t count);
  // to = the mean that the bit stands for, or to += that mean.
  void (*fromOneBit)(const uint32_t* words, const float* means, float* to, size_t count);
  void (*addOneBit)(const uint32_t* words, const float* means, float* to, size_t count);

  // Returns the sum of squares in double: first 16 partial sums, then their sum in order.
  double (*squares)(const float* values, size_t count);
  // u ← m·u + scale·g; v ← v + u.
  void (*accumulate)(
      const float* gradient, float* u, float* v, size_t count, float momentum, float scale);
  // v ← v + scale·g.
  void (*addScaled)(const float* gradient, float* v, size_t count, float scale);

  // Finds the largest magnitude of each of `columns` groups. Group c has the values [r·columns + c]
  // of all rows r. Magnitudes are the bits of floats without the sign, which have the order of the
  // numbers. A NaN is above all others.
  void (*maxima)(const float* values, size_t rows, size_t columns, uint32_t* magnitudes);
  // Writes the positions at which magnitudes are at least `least`, in ascending order. Returns how
  // many it has written. `positions` must have room for `count`.
  size_t (*collect)(const float* values, size_t count, uint32_t least, uint32_t* positions);

  // Writes the whole numbers m with values[i] = m·unit. Returns false if a value has no such m
  // between -most and most. most < 2^20.
  bool (*toMultiples)(
      const float* values, float unit, int32_t most, int32_t* multiples, size_t count);
};

extern const Loops OLDEST_LOOPS;  // x86-64 without extensions
extern const Loops AVX2_LOOPS;
extern const Loops AVX512_LOOPS;  // F, BW, DQ and VL

// This machine can run the entries [0, loopsHere()) of the list, which has the fastest last.
constexpr const Loops* ALL_LOOPS[] = {&OLDEST_LOOPS, &AVX2_LOOPS, &AVX512_LOOPS};
size_t loopsHere();
// Returns the fastest loops that this machine can run.
const Loops& loops();

}  // namespace rpc::codec

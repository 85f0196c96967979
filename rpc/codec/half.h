// rpc/codec/half.h: converts between float32 and float16 or bfloat16. For files that are compiled
// once per instruction set, so none of its functions may be shared with other files.
#pragma once

#include <cstdint>

#include "rpc/codec/bits.h"

namespace rpc::codec {
namespace {

// Uses only integers and one addition. Therefore the results are the same with every instruction
// set, and the compiler can vectorize loops over this function.
inline uint16_t toFloat16(float value) {
  uint32_t bits = bitsOf(value), magnitude = bits & MAGNITUDE;
  // The exponent's bias is smaller by 112. Rounding removes 13 bits, and may carry into the
  // exponent.
  uint32_t normal = (magnitude + 0xfff + ((magnitude >> 13) & 1) - (112u << 23)) >> 13;
  // Below 2^-14, the unit is 2^-24, which is also the unit of floats in [0.5, 1).
  uint32_t small = bitsOf(floatOf(magnitude) + 0.5f) - bitsOf(0.5f);
  uint32_t half = magnitude < (113u << 23) ? small : normal;
  half = magnitude < (143u << 23) ? half : 0x7c00;
  half = magnitude > INFINITE ? 0x7e00 : half;
  return uint16_t(half | ((bits & ~MAGNITUDE) >> 16));
}

inline float fromFloat16(uint16_t half) {
  uint32_t magnitude = half & 0x7fffu, exponent = half & 0x7c00u;
  uint32_t bits = (magnitude << 13) + ((exponent == 0x7c00 ? 224u : 112u) << 23);
  uint32_t small = bitsOf(float(int32_t(magnitude)) * 0x1p-24f);
  return floatOf((exponent == 0 ? small : bits) | uint32_t(half & 0x8000u) << 16);
}

inline uint16_t toBFloat16(float value) {
  uint32_t bits = bitsOf(value);
  uint32_t half = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  uint32_t quiet = ((bits & ~MAGNITUDE) >> 16) | 0x7fc0;
  return uint16_t((bits & MAGNITUDE) > INFINITE ? quiet : half);
}

inline float fromBFloat16(uint16_t half) {
  return floatOf(uint32_t(half) << 16);
}

}  // namespace
}  // namespace rpc::codec

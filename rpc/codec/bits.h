// rpc/codec/bits.h: converts between floats and their bits. For files that are compiled once per
// instruction set, so none of its functions may be shared with other files.
#pragma once

#include <cstdint>

namespace rpc::codec {
namespace {

constexpr uint32_t MAGNITUDE = 0x7fffffff;  // all bits but the sign
constexpr uint32_t INFINITE = 0x7f800000;

inline uint32_t bitsOf(float value) {
  return __builtin_bit_cast(uint32_t, value);
}

inline float floatOf(uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

}  // namespace
}  // namespace rpc::codec

#include "nn/cuda/element.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <initializer_list>

namespace nn::cuda {
namespace {

// Converts with the compiler's own halves.
float halfOf(uint16_t bits) {
  _Float16 half;
  memcpy(&half, &bits, sizeof(half));
  return half;
}
uint16_t bitsOfHalf(float value) {
  auto half = static_cast<_Float16>(value);
  uint16_t bits;
  memcpy(&bits, &half, sizeof(bits));
  return bits;
}

TEST_CASE("halves: every half is read as the compiler reads it, and stored unchanged") {
  for (uint32_t i = 0; i < 1 << 16; i++) {
    Float16 half{uint16_t(i)};
    float value = load(half);
    if (std::isnan(halfOf(i))) {
      CHECK(std::isnan(value));
      continue;
    }
    REQUIRE(bitsOf(value) == bitsOf(halfOf(i)));
    Float16 again;
    store(again, value);
    REQUIRE(again.bits == i);
  }
}

TEST_CASE("halves: floats of every size are rounded to the nearest half, ties to even") {
  // Odd, so that all low bits occur.
  constexpr uint64_t STRIDE = 10007;
  for (uint64_t i = 0; i < uint64_t(1) << 32; i += STRIDE) {
    float value = floatOf(uint32_t(i));
    if (std::isnan(value)) continue;
    Float16 half;
    store(half, value);
    REQUIRE(half.bits == bitsOfHalf(value));
  }
  // The middle between every two halves, and the floats right beside it.
  for (uint32_t i = 0; i < 0x7bff; i++) {
    float middle = (halfOf(i) + halfOf(i + 1)) / 2;
    for (uint32_t bits: {bitsOf(middle) - 1, bitsOf(middle), bitsOf(middle) + 1}) {
      Float16 half;
      store(half, floatOf(bits));
      REQUIRE(half.bits == bitsOfHalf(floatOf(bits)));
    }
  }
}

TEST_CASE("bfloat16: floats are rounded to the nearest, ties to even, and NaN stays NaN") {
  struct {
    uint32_t bits;
    uint16_t expected;
  } rows[] = {{0x3f808000, 0x3f80}, {0x3f818000, 0x3f82}, {0x3f808001, 0x3f81},
      {0x3f807fff, 0x3f80}, {0x7f7fffff, 0x7f80}, {0x7f800000, 0x7f80}, {0x80000000, 0x8000},
      {0x7f800001, 0x7fc0}};
  for (auto& row: rows) {
    Bfloat16 value;
    store(value, floatOf(row.bits));
    CHECK(value.bits == row.expected);
  }
  CHECK(load(Bfloat16{0x3f80}) == 1);
}

}  // namespace
}  // namespace nn::cuda

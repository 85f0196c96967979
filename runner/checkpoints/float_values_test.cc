#include "runner/checkpoints/float_values.h"

#include <doctest/doctest.h>
#include <math.h>
#include <string.h>

#include <limits>

#include "tests/text.h"

namespace runner {
namespace {

// Reads the values from an odd address, and returns them as floats.
template <typename T, size_t count>
kj::Array<float> floatsOf(kj::StringPtr type, const T (&values)[count]) {
  auto bytes = kj::heapArray<kj::byte>(1 + sizeof(values));
  memcpy(bytes.begin() + 1, values, sizeof(values));
  FoundTensor array{kj::str("x"), kj::str(type), kj::str(count), bytes.slice(1, bytes.size())};
  CHECK(hasFloats(array));
  auto floats = kj::heapArray<float>(count);
  writeFloats(array, floats);
  return floats;
}

TEST_CASE("Float values: float32 stays unchanged") {
  auto floats = floatsOf("F32", {1.5f, -0.1f, 1e-40f});
  CHECK(floats[0] == 1.5f);
  CHECK(floats[1] == -0.1f);
  CHECK(floats[2] == 1e-40f);
}

TEST_CASE("Float values: float64 is rounded, and values too large for a float become infinite") {
  double most = std::numeric_limits<float>::max();
  auto floats = floatsOf("F64", {0.1, 1 + 1e-12, most, 1e39, -1e300, double(INFINITY), 1e-60});
  CHECK(floats[0] == 0.1f);
  CHECK(floats[1] == 1);
  CHECK(floats[2] == float(most));
  CHECK(floats[3] == INFINITY);
  CHECK(floats[4] == -INFINITY);
  CHECK(floats[5] == INFINITY);
  CHECK(floats[6] == 0);
}

TEST_CASE("Float values: all kinds of halves have the value that IEEE 754 gives them") {
  auto floats = floatsOf("F16",
      {uint16_t(0x3c00), uint16_t(0xc500), uint16_t(0x7bff), uint16_t(0x0001), uint16_t(0x83ff),
          uint16_t(0x0400), uint16_t(0x7c00), uint16_t(0xfc00), uint16_t(0x7e00)});
  CHECK(floats[0] == 1);
  CHECK(floats[1] == -5);
  CHECK(floats[2] == 65504);
  CHECK(floats[3] == ldexpf(1, -24));
  CHECK(floats[4] == -ldexpf(1023, -24));
  CHECK(floats[5] == ldexpf(1, -14));
  CHECK(floats[6] == INFINITY);
  CHECK(floats[7] == -INFINITY);
  CHECK(isnan(floats[8]));
}

TEST_CASE("Float values: bfloat16 is the upper half of a float") {
  auto floats = floatsOf("BF16", {uint16_t(0x3f80), uint16_t(0xc040), uint16_t(0x7f80)});
  CHECK(floats[0] == 1);
  CHECK(floats[1] == -3);
  CHECK(floats[2] == INFINITY);
}

TEST_CASE("Float values: whole numbers are not floats") {
  CHECK(!hasFloats({kj::str("x"), kj::str("U64"), kj::str("0"), nullptr}));
}

}  // namespace
}  // namespace runner

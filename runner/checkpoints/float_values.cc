#include "runner/checkpoints/float_values.h"

#include <kj/debug.h>
#include <math.h>
#include <string.h>

#include <limits>

namespace runner {

Float16::operator float() const {
  int exponent = bits >> 10 & 31;
  int fraction = bits & 1023;
  float magnitude;
  if (exponent == 31) {
    magnitude = fraction == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    magnitude = ldexpf(float(fraction), -24);
  } else {
    magnitude = ldexpf(float(1024 + fraction), exponent - 25);
  }
  return bits & 0x8000 ? -magnitude : magnitude;
}

Bfloat16::operator float() const {
  uint32_t whole = uint32_t(bits) << 16;
  float result;
  memcpy(&result, &whole, sizeof(result));
  return result;
}

namespace {

float floatOf(float value) {
  return value;
}

// C++ does not define the conversion of values that are out of range.
float floatOf(double value) {
  constexpr double MOST = std::numeric_limits<float>::max();
  if (fabs(value) > MOST) return value < 0 ? -INFINITY : INFINITY;
  return float(value);
}

// The values may be unaligned.
template <typename T>
void convert(kj::ArrayPtr<const kj::byte> values, kj::ArrayPtr<float> to) {
  KJ_REQUIRE(values.size() == to.size() * sizeof(T), values.size(), to.size());
  auto from = values.begin();
  for (auto& x: to) {
    T value;
    memcpy(&value, from, sizeof(T));
    x = floatOf(value);
    from += sizeof(T);
  }
}

// A row of the table of types.
struct TypeRow {
  kj::StringPtr name;
  void (*convert)(kj::ArrayPtr<const kj::byte> values, kj::ArrayPtr<float> to);
};

constexpr TypeRow TYPES[] = {
    {"F32"_kj, convert<float>},
    {"F64"_kj, convert<double>},
    {"F16"_kj, convert<Float16>},
    {"BF16"_kj, convert<Bfloat16>},
};

const TypeRow* rowOf(kj::StringPtr type) {
  for (auto& row: TYPES) {
    if (row.name == type) return &row;
  }
  return nullptr;
}

}  // namespace

bool hasFloats(const FoundTensor& array) {
  return rowOf(array.type) != nullptr;
}

void writeFloats(const FoundTensor& array, kj::ArrayPtr<float> to) {
  auto row = rowOf(array.type);
  KJ_REQUIRE(row != nullptr, "this type has no floats", array.type);
  row->convert(array.values, to);
}

}  // namespace runner

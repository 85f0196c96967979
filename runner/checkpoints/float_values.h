// runner/checkpoints/float_values.h: the values of an array in a file as floats.
#pragma once

#include <kj/array.h>

#include <cstdint>

#include "runner/checkpoints/safetensors.h"

namespace runner {

// A half-precision number of IEEE 754: a sign, 5 bits of exponent, 10 bits of fraction.
struct Float16 {
  uint16_t bits;
  operator float() const;
};

// The upper half of a float.
struct Bfloat16 {
  uint16_t bits;
  operator float() const;
};

// Whether writeFloats() knows the type: F32, F64, F16, BF16.
bool hasFloats(const FoundTensor& array);

// Writes the values of `array` to `to`, which has one element per value. A value that is too large
// for a float becomes infinite. The type must be one of those that hasFloats() knows.
void writeFloats(const FoundTensor& array, kj::ArrayPtr<float> to);

}  // namespace runner

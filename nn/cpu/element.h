// nn/cpu/element.h: what an array of values holds.
#pragma once

#include <stdint.h>

namespace nn::cpu {

// BFLOAT16 is the upper half of a float: its exponent, and 8 of its 24 digits.
enum class Element { FLOAT, BFLOAT16 };

struct BFloat16 {
  uint16_t bits;
};

}  // namespace nn::cpu

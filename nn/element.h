// nn/element.h: how the values of an array are stored.
#pragma once

// Compilers for devices and for newer instruction sets read this file too: no KJ, and nothing that
// a linker could share between their code and other code.
#include <stddef.h>
#include <stdint.h>

namespace nn {

// Sums, statistics, parameters and the loss are always float32.
enum class Element : uint8_t { FLOAT32, BFLOAT16, FLOAT16 };

static constexpr size_t bytesOf(Element element) {
  return element == Element::FLOAT32 ? 4 : 2;
}

// The bits of a bfloat16, which is the upper half of a float: its sign, its exponent, and 8 of its
// 24 significant bits.
struct Bfloat16 {
  uint16_t bits;
};
// The bits of a half of IEEE 754.
struct Float16 {
  uint16_t bits;
};

}  // namespace nn

// nn/dropout.h: which elements a Dropout removes. All backends follow this rule.
#pragma once

// Compilers for devices and for newer instruction sets read this file too: no KJ, and nothing that
// a linker could share between their code and other code.
#include <stdint.h>

#include "nn/loops/host_device.h"

namespace nn {

// The elements that one Dropout node removes from one row: those whose number is below the
// threshold.
//
// An element's number is 24 bits of a hash of the two keys and the element's index. The hash uses
// 32-bit operations only, so it costs about ten vector instructions per vector:
//   h = index ^ first;  h = (h ^ h >> 16) · 0x7feb352d;  h = (h ^ h >> 15) + second
//   h = h · 0x846ca68b;  h = h ^ h >> 16;  number = h >> 8
// The constants and rounds are those of Wellons' lowbias32 (2018), with a second key between them.
struct DropoutMask {
  uint32_t first;
  uint32_t second;
  uint32_t threshold;  // rate · 2^24, rounded
  float scale;         // the factor of elements that stay: 1 / (1 - rate)
};

// The mask of the row with number `draw` (see Program::setBatch()) at `node`. It does not depend on
// the row's place in the batch, nor on the backend.
DropoutMask dropoutMask(double rate, uint64_t draw, unsigned node);

// Whether `mask` removes element `index` of the row, counted as C×H×W.
[[gnu::always_inline]] HOST_DEVICE bool isDropped(const DropoutMask& mask, uint32_t index) {
  uint32_t h = index ^ mask.first;
  h = (h ^ h >> 16) * 0x7feb352du;
  h = (h ^ h >> 15) + mask.second;
  h *= 0x846ca68bu;
  h ^= h >> 16;
  return h >> 8 < mask.threshold;
}

}  // namespace nn

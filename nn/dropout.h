// nn/dropout.h: which elements a Dropout takes away: one rule for all backends.
#pragma once

// Included by files that are compiled for newer instruction sets: no inline code here.
#include <stdint.h>

namespace nn {

// What one Dropout node takes away of one row.
//
// An element's number is 24 bits of a hash of the keys and its index, 32-bit operations alone, so
// that it costs some ten vector instructions a vector:
//   h = index ^ first;  h = (h ^ h >> 16) · 0x7feb352d;  h = (h ^ h >> 15) + second
//   h = h · 0x846ca68b;  h = h ^ h >> 16;  number = h >> 8
// (the constants are those of Wellons' lowbias32 of 2018, whose rounds these are, with a second key
// between them).
struct DropoutMask {
  uint32_t first;
  uint32_t second;
  uint32_t threshold;  // what lies below is taken away: rate · 2^24, rounded
  float scale;         // of what stays: 1 / (1 - rate)
};

// Of the row with this number (see Program::setBatch()) at a node: nothing else goes into it, so
// that it depends neither on a row's place in the batch nor on who computes it.
DropoutMask dropoutMask(double rate, uint64_t draw, unsigned node);

// Whether it takes away element `index` of the row, counted as C×H×W.
bool isDropped(const DropoutMask& mask, uint32_t index);

}  // namespace nn

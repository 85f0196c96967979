// runner/checkpoints/array_figures.h: summarises the values of a saved array, and compares two
// arrays.
#pragma once

#include <kj/string.h>

#include "runner/checkpoints/safetensors.h"

namespace runner {

// The figures of an array, for people. The texts are empty if it has no finite values.
struct ArrayFigures {
  uint64_t values = 0;
  uint64_t notFinite = 0;
  // Of the finite values. The first two are exact.
  kj::String min, max, mean;
};

ArrayFigures figuresOf(const FoundTensor& array);

// Where two arrays differ. Values count as different if one of their bits differs.
struct ArrayDifference {
  uint64_t values = 0;  // how many differ
  uint64_t first = 0;   // the index of the first one
  // The largest absolute difference of two finite values.
  double largest = 0;
  // Of the values that differ, how many are not finite in one of the arrays.
  uint64_t notFinite = 0;
};

// The arrays must have the same type and size.
ArrayDifference differenceOf(const FoundTensor& a, const FoundTensor& b);

}  // namespace runner

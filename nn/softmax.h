// nn/softmax.h: the softmax of a row of logits, and the loss and hits of a batch of logits.
#pragma once

#include <kj/array.h>

#include "nn/program.h"

namespace nn {

// softmax(x)[k] = exp(x[k] - x[best]) / sum
struct Softmax {
  uint best;   // the first of the largest logits
  double sum;  // over k of exp(x[k] - x[best]): at least 1
};

// The softmax of one row, which has at least one logit.
Softmax softmaxOf(kj::ArrayPtr<const float> logits);

// Computes what Program::result() returns after validation, from logits (N×classes) and labels (N;
// a row with label -1 does not count). For logits that were changed after they left the program.
BatchResult judge(kj::ArrayPtr<const float> logits, kj::ArrayPtr<const int32_t> labels);

// Returns how many rows have their label among the k largest logits. Of equal logits the first
// counts as larger, so that k = 1 gives BatchResult::correct. Takes what judge() takes.
uint64_t countInTopK(kj::ArrayPtr<const float> logits, kj::ArrayPtr<const int32_t> labels, uint k);

}  // namespace nn

// nn/softmax.h: the softmax of a row of logits, and the loss and hits of a batch of logits.
#pragma once

#include <kj/array.h>
#include <kj/debug.h>

#include "nn/program.h"

namespace nn {

// softmax(x)[k] = exp(x[k] - x[best]) / sum
struct Softmax {
  uint best;   // the first of the largest logits
  double sum;  // over k of exp(x[k] - x[best]): at least 1
};

// Returns the place of the largest logit of a row, the first of equal ones. The row is not empty.
uint largestOf(kj::ArrayPtr<const float> logits);

// The softmax of one row, which has at least one logit.
Softmax softmaxOf(kj::ArrayPtr<const float> logits);

// Calls take(row, label) with the logits and the label of each row that counts, in their order.
// `logits` is N×classes. `labels` has N entries; a row with label -1 does not count. Throws if a
// label names no class.
template <typename Func>
void eachRow(kj::ArrayPtr<const float> logits, kj::ArrayPtr<const int32_t> labels, Func&& take) {
  KJ_REQUIRE(labels.size() > 0 && logits.size() % labels.size() == 0, logits.size(), labels.size());
  size_t classes = logits.size() / labels.size();
  for (auto n: kj::indices(labels)) {
    int32_t label = labels[n];
    if (label < 0) continue;
    KJ_REQUIRE(uint(label) < classes, "a label names no class", label, classes);
    take(logits.slice(n * classes, (n + 1) * classes), uint(label));
  }
}

// Computes the same as Program::result() after validation, from the rows of eachRow(). For logits
// that were changed after they left the program.
BatchResult judge(kj::ArrayPtr<const float> logits, kj::ArrayPtr<const int32_t> labels);

// Returns how many rows have their label among the k largest logits. Of equal logits the first
// counts as larger, so that k = 1 gives BatchResult::correct.
uint64_t countInTopK(kj::ArrayPtr<const float> logits, kj::ArrayPtr<const int32_t> labels, uint k);

}  // namespace nn

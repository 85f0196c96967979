// nn/softmax.h: the softmax of a row of logits, and what logits say of the labels of a batch.
#pragma once

#include <kj/array.h>

#include "nn/program.h"

namespace nn {

// softmax(x)[k] = exp(x[k] - x[best]) / sum
struct Softmax {
  uint best;   // the first of the largest logits
  double sum;  // over k of exp(x[k] - x[best]): at least 1
};

// Of the logits of one row; there is at least one.
Softmax softmaxOf(kj::ArrayPtr<const float> logits);

// What Program::result() says of a batch in validation, from its logits (N×classes) and labels (N,
// -1 = the row counts nothing): for logits that were changed after they left the program.
BatchResult judge(kj::ArrayPtr<const float> logits, kj::ArrayPtr<const int32_t> labels);

}  // namespace nn

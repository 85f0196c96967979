#include "nn/softmax.h"

#include <cmath>

namespace nn {

uint largestOf(kj::ArrayPtr<const float> logits) {
  uint best = 0;
  for (uint k = 1; k < logits.size(); ++k) {
    if (logits[k] > logits[best]) best = k;
  }
  return best;
}

Softmax softmaxOf(kj::ArrayPtr<const float> logits) {
  uint best = largestOf(logits);
  double sum = 0;
  for (float x: logits) sum += std::exp(double(x) - logits[best]);
  return {best, sum};
}

BatchResult judge(kj::ArrayPtr<const float> logits, kj::ArrayPtr<const int32_t> labels) {
  BatchResult result;
  eachRow(logits, labels, [&](kj::ArrayPtr<const float> row, uint label) {
    auto [best, sum] = softmaxOf(row);
    result.lossSum += std::log(sum) + row[best] - row[label];
    result.correct += best == label;
    ++result.images;
  });
  return result;
}

uint64_t countInTopK(kj::ArrayPtr<const float> logits, kj::ArrayPtr<const int32_t> labels, uint k) {
  uint64_t count = 0;
  eachRow(logits, labels, [&](kj::ArrayPtr<const float> row, uint label) {
    uint before = 0;
    for (uint i: kj::indices(row)) {
      // A logit that is not a number is neither larger nor smaller.
      before += row[i] > row[label] || (!(row[i] < row[label]) && i < label);
    }
    count += before < k;
  });
  return count;
}

}  // namespace nn

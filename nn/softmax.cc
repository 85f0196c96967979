#include "nn/softmax.h"

#include <kj/debug.h>

#include <cmath>

namespace nn {

Softmax softmaxOf(kj::ArrayPtr<const float> logits) {
  uint best = 0;
  for (uint k = 1; k < logits.size(); ++k) {
    if (logits[k] > logits[best]) best = k;
  }
  double sum = 0;
  for (float x: logits) sum += std::exp(double(x) - logits[best]);
  return {best, sum};
}

namespace {

// Calls `take` with the logits and the label of each row that counts.
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

}  // namespace

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
      before += row[i] > row[label] || (row[i] == row[label] && i < label);
    }
    count += before < k;
  });
  return count;
}

}  // namespace nn

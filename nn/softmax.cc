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

BatchResult judge(kj::ArrayPtr<const float> logits, kj::ArrayPtr<const int32_t> labels) {
  KJ_REQUIRE(labels.size() > 0 && logits.size() % labels.size() == 0, logits.size(), labels.size());
  size_t classes = logits.size() / labels.size();
  BatchResult result;
  for (auto n: kj::indices(labels)) {
    int32_t label = labels[n];
    if (label < 0) continue;
    KJ_REQUIRE(uint(label) < classes, "a label names no class", label, classes);
    auto row = logits.slice(n * classes, (n + 1) * classes);
    auto [best, sum] = softmaxOf(row);
    result.lossSum += std::log(sum) + row[best] - row[label];
    result.correct += best == uint(label);
    ++result.images;
  }
  return result;
}

}  // namespace nn

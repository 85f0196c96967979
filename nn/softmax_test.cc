#include "nn/softmax.h"

#include <doctest/doctest.h>

#include <cmath>

namespace nn {
namespace {

TEST_CASE("softmaxOf: the first of equal logits is the best, and large logits do not overflow") {
  auto even = softmaxOf({1, 3, 3, 2});
  CHECK(even.best == 1);
  CHECK(even.sum == doctest::Approx(2 + std::exp(-1.0) + std::exp(-2.0)));
  auto large = softmaxOf({-3e38f, 3e38f});
  CHECK(large.best == 1);
  CHECK(large.sum == 1);
}

TEST_CASE("judge: sums losses and hits over the rows that count") {
  const float logits[] = {0, 1, 5, 5, -2, 2, 7, 7};
  const int32_t labels[] = {1, 1, -1, 0};
  auto result = judge(logits, labels);
  CHECK(result.images == 3);
  // The second row's largest comes first, where its label is not.
  CHECK(result.correct == 2);
  CHECK(result.lossSum == doctest::Approx(std::log(1 + std::exp(-1.0)) + 2 * std::log(2.0)));
}

}  // namespace
}  // namespace nn

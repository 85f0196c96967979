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

TEST_CASE("countInTopK: of equal logits the first ones count as larger") {
  const float logits[] = {4, 9, 4, 1, 4};
  auto isIn = [&](int32_t label, uint k) { return countInTopK(logits, {label}, k) == 1; };
  CHECK(isIn(1, 1));
  CHECK_FALSE(isIn(0, 1));
  CHECK(isIn(0, 2));
  CHECK_FALSE(isIn(2, 2));
  CHECK(isIn(2, 3));
  CHECK_FALSE(isIn(4, 3));
  CHECK(isIn(4, 4));
  CHECK_FALSE(isIn(3, 4));
  CHECK(isIn(3, 5));
  CHECK_FALSE(isIn(1, 0));
}

TEST_CASE("countInTopK: logits that are not numbers count as equal") {
  const float nan = std::nanf("");
  const float logits[] = {nan, nan, nan};
  CHECK(countInTopK(logits, {0}, 1) == 1);
  CHECK(judge(logits, {0}).correct == 1);
  CHECK(countInTopK(logits, {2}, 2) == 0);
  CHECK(judge(logits, {2}).correct == 0);
}

TEST_CASE("countInTopK: counts the rows with a label, and with k = 1 those that judge() counts") {
  const float logits[] = {0, 1, 5, 5, -2, 2, 7, 7};
  const int32_t labels[] = {1, 1, -1, 0};
  CHECK(countInTopK(logits, labels, 1) == judge(logits, labels).correct);
  CHECK(countInTopK(logits, labels, 2) == 3);
  CHECK_THROWS(countInTopK(logits, {0, 1, 2, 1}, 1));
}

}  // namespace
}  // namespace nn

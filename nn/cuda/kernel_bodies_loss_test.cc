#include <doctest/doctest.h>
#include <kj/debug.h>

#include <cmath>

#include "nn/cuda/testing/host_kernels.h"
#include "nn/cuda/testing/test_batch.h"
#include "nn/softmax.h"

namespace nn::cuda {
namespace {

constexpr uint ROWS = 70;

kj::Array<int32_t> drawLabels(uint classes) {
  auto labels = kj::heapArray<int32_t>(ROWS);
  for (uint n = 0; n < ROWS; ++n) labels[n] = n % 5 == 3 ? -1 : int32_t(n * 7 % classes);
  return labels;
}

// Draws logits whose exponentials overflow. In some rows, several logits are the largest.
Tensor drawLogits(uint classes) {
  auto logits = drawTensor(1, ROWS, {classes}, 30, 500);
  for (double& value: logits.values) value = std::round(value / 8) * 8;
  return logits;
}

void check(Element element, Form form, uint classes, float smoothing) {
  Batch x(Element::FLOAT32, form, drawLogits(classes)), dx(element, form, ROWS, {classes});
  auto labels = drawLabels(classes);
  auto results = kj::heapArray<RowResult>(ROWS);
  SoftmaxLoss kernel{
      element, x.view(), labels.begin(), smoothing, results.begin(), dx.view(), 0.25f};
  runOnHost(kernel);

  SoftmaxCrossEntropy op{smoothing};
  auto values = x.values();
  Tensor losses(ROWS, {1}), slopes(ROWS, {classes});
  for (double& slope: slopes.values) slope = 0;
  reference::forward(op, values, labels, losses);
  reference::backward(op, values, labels, slopes);
  for (double& slope: slopes.values) slope *= 0.25;
  double lossSum = 0;
  uint64_t images = 0;
  for (uint n = 0; n < ROWS; ++n) {
    REQUIRE(std::abs(results[n].loss - losses.values[n]) <= 1e-6 * (1 + losses.values[n]));
    REQUIRE(bool(results[n].counts) == (labels[n] != -1));
    lossSum += results[n].loss;
    images += labels[n] != -1;
  }
  CHECK(distance(dx.values(), slopes) <= 1e-6 + roundingOf(element));

  auto floats = KJ_MAP(value, values.values) {
    return float(value);
  };
  BatchSums sums{-1, 7, 7}, total{1, 2, 3};
  runOnHost(SumRows{results.begin(), ROWS, &sums, &total});
  CHECK(sums.correct == judge(floats, labels).correct);
  CHECK(sums.images == images);
  CHECK(std::abs(sums.lossSum - lossSum) <= 1e-12 * lossSum);
  CHECK(total.lossSum == 1 + sums.lossSum);
  CHECK(total.correct == 2 + sums.correct);
  CHECK(total.images == 3 + sums.images);

  // As in validation, without gradients, and in another order.
  auto again = kj::heapArray<RowResult>(ROWS);
  kernel.rows = again.begin();
  kernel.dx = {};
  runOnHost(kernel, Order::DESCENDING);
  for (uint n = 0; n < ROWS; ++n) {
    REQUIRE(again[n].loss == results[n].loss);
    REQUIRE(again[n].correct == results[n].correct);
  }
  BatchSums sumsAgain;
  runOnHost(SumRows{again.begin(), ROWS, &sumsAgain}, Order::DESCENDING);
  CHECK(sumsAgain.lossSum == sums.lossSum);
  CHECK(sumsAgain.correct == sums.correct);
}

TEST_CASE("loss: rows, gradients and sums agree with plain loops") {
  for (auto element: {Element::FLOAT32, Element::BFLOAT16, Element::FLOAT16}) {
    for (auto form: {Form::PADDED, Form::PART, Form::ALIGNED_PART}) {
      // More classes than threads, and fewer.
      for (uint classes: {1, 10, 301}) {
        for (float smoothing: {0.0f, 0.2f}) check(element, form, classes, smoothing);
      }
    }
  }
}

TEST_CASE("loss: NaN or infinity among the logits gives a loss that is not finite") {
  for (double bad: {double(NAN), double(INFINITY)}) {
    Tensor logits = drawTensor(1, 1, {10});
    logits.values[4] = bad;
    Batch x(Element::FLOAT32, Form::PADDED, logits);
    int32_t label = 3;
    RowResult result;
    runOnHost(SoftmaxLoss{Element::FLOAT32, x.view(), &label, 0, &result, {}, 1});
    CHECK(!std::isfinite(result.loss));
  }
}

TEST_CASE("loss: more rows than threads are summed in double") {
  constexpr uint COUNT = 1000;
  auto rows = kj::heapArray<RowResult>(COUNT);
  for (uint n = 0; n < COUNT; ++n) rows[n] = {n == 999 ? 0x1p-20f : 0x1p20f, n % 3 == 0, 1};
  BatchSums sums;
  runOnHost(SumRows{rows.begin(), COUNT, &sums});
  CHECK(sums.lossSum == 999 * 0x1p20 + 0x1p-20);
  CHECK(sums.correct == 334);
  CHECK(sums.images == COUNT);
}

}  // namespace
}  // namespace nn::cuda

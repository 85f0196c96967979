#include "nn/cuda/lt_product.h"

#include <doctest/doctest.h>
#include <kj/debug.h>

#include "nn/cuda/libraries.h"
#include "nn/cuda/testing/host_convolution.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace nn::cuda {
namespace {

constexpr Direction DIRECTIONS[] = {
    Direction::FORWARD, Direction::BACKWARD_DATA, Direction::BACKWARD_FILTERS};

ConvolutionProblem shapeOf(uint images, BatchLayout x, BatchLayout y, uint kernelHeight,
    uint kernelWidth, uint stride = 1) {
  return {.element = Element::FLOAT32,
      .output = Element::FLOAT32,
      .tensorFloats = false,
      .images = images,
      .x = x,
      .y = y,
      .kernelHeight = kernelHeight,
      .kernelWidth = kernelWidth,
      .stride = stride,
      .pad = 0,
      .deterministic = false};
}

// op(A)·op(B) by the definition, columns ld apart.
void multiply(const Product& p, const float* a, const float* b, float* c) {
  for (uint64_t i = 0; i < p.m; i++) {
    for (uint64_t j = 0; j < p.n; j++) {
      double sum = 0;
      for (uint64_t l = 0; l < p.k; l++) {
        sum += double(p.transposesA ? a[l + i * p.lda] : a[i + l * p.lda]) *
               (p.transposesB ? b[j + l * p.ldb] : b[l + j * p.ldb]);
      }
      c[i + j * p.ldc] = float(sum);
    }
  }
}

// Small whole numbers, so that nothing is rounded.
kj::Array<float> values(size_t size, uint seed) {
  auto result = kj::heapArray<float>(size);
  for (size_t i = 0; i < size; i++) result[i] = float((i * 7 + seed * 5) % 23) - 11;
  return result;
}

void checkAgainstConvolution(const ConvolutionProblem& s) {
  auto sizeOf = [&](const BatchLayout& e) {
    return size_t(s.images) * e.height * e.width * e.stride;
  };
  auto x = values(sizeOf(s.x), 1);
  auto y = values(sizeOf(s.y), 2);
  auto filters = values(size_t(s.y.channels) * s.kernelHeight * s.kernelWidth * s.x.channels, 3);
  for (auto direction: DIRECTIONS) {
    auto& a = direction == Direction::BACKWARD_DATA ? y : x;
    auto& b = direction == Direction::BACKWARD_FILTERS ? y : filters;
    auto& c = direction == Direction::FORWARD         ? y
              : direction == Direction::BACKWARD_DATA ? x
                                                      : filters;
    // Bytes between the values stay unchanged in both.
    auto expected = kj::heapArray<float>(c), got = kj::heapArray<float>(c);
    convolveOnHost(s, direction, a.begin(), b.begin(), expected.begin());
    auto product = KJ_ASSERT_NONNULL(productOf(s, direction));
    auto &left = product.swaps ? b : a, &right = product.swaps ? a : b;
    multiply(product, left.begin(), right.begin(), got.begin());
    CAPTURE(int(direction));
    CHECK(got == expected);
  }
}

TEST_CASE("LtProduct: a dense layer is a product in all directions") {
  checkAgainstConvolution(shapeOf(5, {4, 3, 2, 4}, {8, 1, 1, 8}, 3, 2));
  checkAgainstConvolution(shapeOf(3, {4, 1, 1, 4}, {8, 1, 1, 12}, 1, 1));
}

TEST_CASE("LtProduct: a 1x1 convolution is a product, also with gaps between pixels") {
  checkAgainstConvolution(shapeOf(2, {4, 3, 2, 4}, {8, 3, 2, 8}, 1, 1));
  checkAgainstConvolution(shapeOf(2, {4, 3, 2, 7}, {8, 3, 2, 11}, 1, 1));
}

TEST_CASE("LtProduct: strides, padding, small windows and gaps between rows rule out a product") {
  auto isOne = [](const ConvolutionProblem& shape) {
    return productOf(shape, Direction::FORWARD) != nullptr;
  };
  CHECK(isOne(shapeOf(2, {4, 3, 3, 4}, {8, 1, 1, 8}, 3, 3)));
  CHECK(!isOne(shapeOf(2, {4, 3, 3, 4}, {8, 2, 2, 8}, 2, 2)));
  CHECK(!isOne(shapeOf(2, {4, 3, 3, 4}, {8, 2, 2, 8}, 1, 1, 2)));
  CHECK(!isOne(shapeOf(2, {4, 3, 3, 8}, {8, 1, 1, 8}, 3, 3)));  // rows of x have gaps
  auto padded = shapeOf(2, {4, 3, 3, 4}, {8, 5, 5, 8}, 1, 1);
  padded.pad = 1;
  CHECK(!isOne(padded));
}

TEST_CASE(
    "LtProduct: without a GPU, descriptions can be made, and only the search for plans fails") {
  KJ_IF_MAYBE(reason, loadLibraries()) SKIP_CASE(reason->cStr());
  auto shape = shapeOf(32, {64, 1, 1, 64}, {16, 1, 1, 16}, 1, 1);
  shape.element = Element::BFLOAT16;
  for (auto direction: DIRECTIONS) {
    auto thrown = kj::runCatchingExceptions(
        [&]() { ltPlans(nullptr, shape, direction, size_t(1) << 20, 8); });
    auto text = kj::str(KJ_ASSERT_NONNULL(thrown).getDescription());
    CHECK(tests::contains(text, "cuBLASLt cannot look for ways to multiply: "));
    // It finds no plan by the name of another library's plan.
    for (auto name: {""_kj, "cudnn 1"_kj, "cublaslt 00"_kj, "cublaslt xx"_kj}) {
      CHECK(ltPlanNamed(nullptr, shape, direction, name) == nullptr);
    }
  }
  shape.kernelHeight = 3;
  CHECK(ltPlans(nullptr, shape, Direction::FORWARD, 0, 8).size() == 0);
}

}  // namespace
}  // namespace nn::cuda

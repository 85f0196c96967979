#include <doctest/doctest.h>

#include <cstdio>

#include "nn/cuda/cudnn_convolution.h"
#include "nn/cuda/libraries.h"
#include "nn/cuda/lt_product.h"
#include "nn/cuda/plan_cache.h"
#include "nn/cuda/testing/network_convolutions.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace nn::cuda {
namespace {

struct Named {
  kj::StringPtr network;
  nn::Shape input;
  uint classes;
};

constexpr Named NETWORKS[] = {
    {"lenet"_kj, {1, 28, 28}, 10},
    {"inception-bn-28-small"_kj, {3, 28, 28}, 10},
    {"resnet-20"_kj, {3, 32, 32}, 10},
    {"resnet-56"_kj, {3, 32, 32}, 10},
    {"airbench94"_kj, {3, 32, 32}, 10},
    {"inception-bn"_kj, {3, 224, 224}, 1000},
    {"resnet-50"_kj, {3, 224, 224}, 1000},
};

struct Precision {
  Element element;
  bool tensorFloats;
};

constexpr Precision PRECISIONS[] = {{Element::FLOAT32, false}, {Element::FLOAT32, true},
    {Element::BFLOAT16, false}, {Element::FLOAT16, false}};

// Prints one row of a table per convolution: the number of plans, the first plan, its workspace in
// bytes, and cuDNN's notes on it.
void checkAll(const CudnnTarget& target, const Named& named, uint images, bool deterministic,
    const Precision& precision) {
  LoweringOptions options{precision.element, precision.tensorFloats, deterministic};
  auto all = convolutionsOf(named.network, named.input, named.classes, images, options);
  REQUIRE(all.size() > 0);
  for (auto& asked: all) {
    auto text = textOf(asked.shape, asked.direction);
    CAPTURE(text);
    auto plans = cudnnPlans(target, asked.shape, asked.direction);
    if (plans.size() == 0) {
      // Engines that cuDNN compiles at run time need a driver. cuBLASLt does without them.
      CHECK(productOf(asked.shape, asked.direction) != nullptr);
      std::printf("%s | %s | 0 | a product\n", named.network.cStr(), text.cStr());
    } else {
      auto& first = *plans[0];
      std::printf("%s | %s | %zu | %s | %zu | %s\n", named.network.cStr(), text.cStr(),
          plans.size(), first.name().cStr(), first.workspace_bytes(), first.notes().cStr());
    }
  }
}

TEST_CASE("every convolution of the networks has plans on an H100") {
  KJ_IF_MAYBE(reason, loadLibraries()) SKIP_CASE(reason->cStr());
  CudnnTarget target = describedDevice(h100());
  for (auto& named: NETWORKS) {
    for (auto& precision: PRECISIONS) {
      for (uint images: {128u, 512u}) {
        for (bool deterministic: {false, true}) {
          checkAll(target, named, images, deterministic, precision);
        }
      }
    }
  }
}

TEST_CASE("every convolution of the networks has plans on an H200") {
  KJ_IF_MAYBE(reason, loadLibraries()) SKIP_CASE(reason->cStr());
  CudnnTarget target = describedDevice(h200());
  for (auto& named: NETWORKS) {
    for (auto& precision: PRECISIONS) checkAll(target, named, 512, false, precision);
  }
}

}  // namespace
}  // namespace nn::cuda

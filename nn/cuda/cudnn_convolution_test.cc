#include "nn/cuda/cudnn_convolution.h"

#include <doctest/doctest.h>
#include <kj/debug.h>

#include "nn/cuda/libraries.h"
#include "nn/cuda/lt_product.h"
#include "nn/cuda/plan_cache.h"
#include "nn/cuda/testing/network_convolutions.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace nn::cuda {
namespace {

constexpr Direction DIRECTIONS[] = {
    Direction::FORWARD, Direction::BACKWARD_DATA, Direction::BACKWARD_FILTERS};

ConvolutionProblem square(Element element) {
  return {.element = element,
      .output = element,
      .tensorFloats = false,
      .images = 32,
      .x = {64, 14, 14, 64},
      .y = {96, 14, 14, 96},
      .kernelHeight = 3,
      .kernelWidth = 3,
      .stride = 1,
      .pad = 1,
      .deterministic = false};
}

bool has(const CudnnPlan& plan, kj::StringPtr note) {
  return tests::contains(plan.notes(), note);
}

TEST_CASE("CudnnConvolution: plans can be made for a device that this machine does not have") {
  KJ_IF_MAYBE(reason, loadLibraries()) SKIP_CASE(reason->cStr());
  CudnnTarget target = describedDevice(h100());
  for (auto element: {Element::FLOAT32, Element::BFLOAT16, Element::FLOAT16}) {
    for (auto direction: DIRECTIONS) {
      auto plans = cudnnPlans(target, square(element), direction);
      CHECK(plans.size() > 1);
      CHECK(cudnnPlans(target, square(element), direction, kj::maxValue, 1)[0]->name() ==
            plans[0]->name());
    }
  }
}

TEST_CASE("CudnnConvolution: every convolution of a network has a plan") {
  KJ_IF_MAYBE(reason, loadLibraries()) SKIP_CASE(reason->cStr());
  CudnnTarget target = describedDevice(h200());
  LoweringOptions options{Element::BFLOAT16, false, true};
  auto all = convolutionsOf("resnet-20", {3, 32, 32}, 10, 128, options);
  CHECK(all.size() > 3);
  for (auto& asked: all) {
    auto text = textOf(asked.shape, asked.direction);
    CAPTURE(text);
    // The logits are float32, and cuBLASLt computes them.
    bool isProduct = productOf(asked.shape, asked.direction) != nullptr;
    CHECK((isProduct || cudnnPlans(target, asked.shape, asked.direction).size() > 0));
  }
}

TEST_CASE("CudnnConvolution: floats are multiplied as floats, unless TF32 is allowed") {
  KJ_IF_MAYBE(reason, loadLibraries()) SKIP_CASE(reason->cStr());
  CudnnTarget target = describedDevice(h100());
  auto shape = square(Element::FLOAT32);
  for (auto direction: DIRECTIONS) {
    for (auto& plan: cudnnPlans(target, shape, direction)) CHECK(!has(*plan, "tensor cores"));
  }
  shape.tensorFloats = true;
  for (auto direction: DIRECTIONS) {
    CHECK(has(*cudnnPlans(target, shape, direction)[0], "tensor cores"));
  }
}

TEST_CASE("CudnnConvolution: `deterministic` leaves out engines that are not deterministic") {
  KJ_IF_MAYBE(reason, loadLibraries()) SKIP_CASE(reason->cStr());
  CudnnTarget target = describedDevice(h100());
  auto shape = square(Element::FLOAT32);
  uint different = 0;
  for (auto& plan: cudnnPlans(target, shape, Direction::BACKWARD_FILTERS)) {
    different += has(*plan, "nondeterministic");
  }
  CHECK(different > 0);
  shape.deterministic = true;
  for (auto& plan: cudnnPlans(target, shape, Direction::BACKWARD_FILTERS)) {
    CHECK(!has(*plan, "nondeterministic"));
  }
}

TEST_CASE("CudnnConvolution: the name of a plan contains the knobs of its engine") {
  KJ_IF_MAYBE(reason, loadLibraries()) SKIP_CASE(reason->cStr());
  CudnnTarget target = describedDevice(h100());
  for (auto direction: DIRECTIONS) {
    auto plans = cudnnPlans(target, square(Element::BFLOAT16), direction);
    CHECK(plans.size() > 16);  // more than there are engines
    CHECK(tests::contains(plans[0]->name(), "="));
    CHECK(tests::contains(plans[0]->json(), R"("CUDNN_KNOB_TYPE_TILE_SIZE":)"));
    CHECK(!tests::contains(plans[0]->json(), R"("CUDNN_KNOB_TYPE_TILE_SIZE":-1)"));
    for (size_t i = 0; i < plans.size(); i++) {
      for (size_t j = 0; j < i; j++) CHECK(plans[i]->name() != plans[j]->name());
    }
  }
}

TEST_CASE("CudnnConvolution: a plan is found again by its name") {
  KJ_IF_MAYBE(reason, loadLibraries()) SKIP_CASE(reason->cStr());
  CudnnTarget target = describedDevice(h100());
  auto shape = square(Element::BFLOAT16);
  for (auto direction: DIRECTIONS) {
    for (auto& plan: cudnnPlans(target, shape, direction)) {
      auto again = KJ_ASSERT_NONNULL(cudnnPlanNamed(target, shape, direction, plan->name()));
      CHECK(again->name() == plan->name());
      CHECK(again->workspace_bytes() == plan->workspace_bytes());
      CHECK(again->json() == plan->json());
    }
  }
  for (auto name: {""_kj, "cudnn 99999"_kj, "cudnn 62 2=4000"_kj, "cublaslt 0"_kj}) {
    CHECK(cudnnPlanNamed(target, shape, Direction::FORWARD, name) == nullptr);
  }
}

TEST_CASE(
    "CudnnConvolution: pixels may have gaps between them, and gradients keep the element type") {
  KJ_IF_MAYBE(reason, loadLibraries()) SKIP_CASE(reason->cStr());
  CudnnTarget target = describedDevice(h100());
  auto shape = square(Element::FLOAT16);
  shape.output = Element::FLOAT32;
  shape.x.stride = 128;
  for (auto direction: {Direction::BACKWARD_DATA, Direction::BACKWARD_FILTERS}) {
    // A plan outlives the objects that it was made from.
    auto json = cudnnPlans(target, shape, direction)[0]->json();
    CHECK(tests::contains(json, R"("dim":[32,64,14,14],"stride":[25088,1,1792,128])"));
    CHECK(tests::contains(json, R"("dim":[32,96,14,14],"stride":[18816,1,1344,96])"));
    CHECK(tests::contains(json, R"("dim":[96,64,3,3],"stride":[576,1,192,64])"));
    CHECK(!tests::contains(json, R"("dataType":"CUDNN_DATA_FLOAT")"));
  }
}

TEST_CASE("CudnnConvolution: the message about a refused convolution has cuDNN's reason") {
  KJ_IF_MAYBE(reason, loadLibraries()) SKIP_CASE(reason->cStr());
  auto told = [](auto&& call) {
    auto thrown = kj::runCatchingExceptions(call);
    return kj::str(KJ_ASSERT_NONNULL(thrown).getDescription());
  };
  CudnnTarget target = describedDevice(h100());
  auto shape = square(Element::BFLOAT16);
  shape.y.width = 15;  // a convolution has no such output
  auto text = told([&]() { cudnnPlans(target, shape, Direction::FORWARD); });
  CHECK(tests::contains(text, "CUDNN_STATUS_BAD_PARAM: is_valid_spatial_dim"));
  CHECK(tests::contains(told([]() { describedDevice("{"); }), "CUDNN_STATUS_BAD_PARAM"));
}

}  // namespace
}  // namespace nn::cuda

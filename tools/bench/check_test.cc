#include "tools/bench/check.h"

#include <doctest/doctest.h>
#include <kj/exception.h>
#include <math.h>

#include "nn/reference/reference.h"
#include "tests/text.h"

namespace tools {
namespace {

constexpr uint IMAGES = 2;

// 2×4×4 → conv 3×3 to 4 channels → dense.
nn::Graph network() {
  configs::Diagnostics diagnostics;
  nn::GraphBuilder builder({2, 4, 4}, diagnostics);
  nn::NodeId x = 0;
  x = builder.add("conv", nn::Conv2d{4, 3, 1, 1, true}, kj::arrayPtr(&x, 1), {});
  x = builder.add("fc", nn::Dense{5, true}, kj::arrayPtr(&x, 1), {});
  return builder.finish(x, {});
}

// A program after one step.
class Stepped {
public:
  explicit Stepped(const nn::Graph& graph)
      : program(nn::REFERENCE.lower(graph, {.batchSize = IMAGES})) {
    for (size_t i: kj::indices(pixels)) pixels[i] = sin(i);
    for (size_t i: kj::indices(program->parameters())) program->parameters()[i] = cos(i);
    program->setBatch(pixels, labels, nullptr);
    for (uint s = 0; s < graph.segments.size(); s++) program->forward(nn::Phase::TRAIN, s);
    for (uint s = graph.segments.size(); s-- > 0;) program->backward(s);
  }

  kj::Own<nn::Program> program;

private:
  float pixels[IMAGES * 2 * 4 * 4];
  const int32_t labels[IMAGES] = {1, 3};
};

kj::String complaintOf(kj::Function<void()> check) {
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { check(); })) {
    return kj::heapString(e->getDescription());
  }
  return kj::str("none");
}

TEST_CASE("check: finds a single wrong gradient, and names its array") {
  auto graph = network();
  Stepped ours(graph), reference(graph);
  auto gradients = [&]() {
    return complaintOf(
        [&]() { requireSameGradients(graph, *ours.program, *reference.program, 1e-3); });
  };
  CHECK(gradients() == "none");
  auto& bias = graph.keys[1];
  REQUIRE(bias.name == "conv_bias");
  float& value = ours.program->gradients()[bias.offset];
  float right = value;
  value = right * 1.5f;
  CHECK(tests::contains(
      gradients(), "gradients of conv_bias differ from the reference implementation's"));
  value = NAN;
  CHECK(tests::contains(gradients(), "gradients of conv_bias"));
  value = right;
  CHECK(gradients() == "none");
}

TEST_CASE("check: finds logits of other weights, and names the phase") {
  auto graph = network();
  Stepped ours(graph), reference(graph);
  auto logits = [&]() {
    return complaintOf(
        [&]() { requireSameLogits(*ours.program, *reference.program, 1e-3, nn::Phase::TRAIN); });
  };
  CHECK(logits() == "none");
  ours.program->parameters()[0] += 1;
  for (uint s = 0; s < graph.segments.size(); s++) ours.program->forward(nn::Phase::TRAIN, s);
  CHECK(tests::contains(logits(), "logits in training differ"));
}

}  // namespace
}  // namespace tools

#include "nn/reference/reference.h"

#include <doctest/doctest.h>

#include <cmath>

#include "configs/language/random.h"
#include "nn/network/initializer.h"
#include "nn/network/layers.h"
#include "nn/network/networks.h"

namespace nn {
namespace {

struct Loaded {
  Graph graph;
  kj::Own<Program> program;

  Loaded(Graph&& built, uint batchSize): graph(kj::mv(built)) {
    program = REFERENCE.lower(graph, {.batchSize = batchSize});
    initialize(
        graph, {.kind = Initializer::XAVIER}, 1, program->parameters(), program->statistics());
  }
  BatchResult step(Phase phase) {
    for (uint s = 0; s < graph.segments.size(); ++s) program->forward(phase, s);
    if (phase == Phase::TRAIN) {
      for (uint s = graph.segments.size(); s-- > 0;) program->backward(s);
    }
    return program->result();
  }
};

Graph chain(Shape input, kj::ArrayPtr<const Op> ops) {
  configs::Diagnostics diagnostics;
  GraphBuilder builder(input, diagnostics);
  NodeId last = 0;
  for (auto& op: ops) last = builder.add("", op, kj::arrayPtr(&last, 1), {});
  Graph graph = builder.finish(last, {});
  REQUIRE(diagnostics.count() == 0);
  return graph;
}

TEST_CASE("Reference: equal logits of n classes have loss log(n), and its gradient is p - onehot") {
  Op ops[] = {Dense{4, true}};
  Loaded net(chain({2, 1, 1}, ops), 3);
  for (float& value: net.program->parameters()) value = 0;
  float pixels[] = {1, 2, 3, 4, 5, 6};
  int32_t labels[] = {2, -1, 0};
  net.program->setBatch(pixels, labels, nullptr);
  auto result = net.step(Phase::TRAIN);
  CHECK(result.images == 2);
  // The first of equal logits counts.
  CHECK(result.correct == 1);
  CHECK(result.lossSum == doctest::Approx(2 * std::log(4)));
  // Bias: sums over rows 0 and 2; weight: the same times x.
  float bias[] = {0.25f - 0.75f, 0.5f, 0.25f - 0.75f, 0.5f};
  for (uint k = 0; k < 4; ++k) CHECK(net.program->gradients()[8 + k] == doctest::Approx(bias[k]));
  CHECK(net.program->gradients()[0] == doctest::Approx(0.25 * 1 - 0.75 * 5));
}

TEST_CASE("Reference: a convolution reads zeros outside and steps by its stride") {
  Op ops[] = {Conv2d{1, 3, 2, 1, true}, Pool{Pool::AVERAGE, 2, 2, 0, Pool::FLOOR}};
  Loaded net(chain({1, 3, 3}, ops), 1);
  for (float& value: net.program->parameters()) value = 1;
  float pixels[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  int32_t labels[] = {0};
  net.program->setBatch(pixels, labels, nullptr);
  net.step(Phase::VALIDATE);
  // Corner sums 1+2+4+5, 2+3+5+6, 4+5+7+8, 5+6+8+9, and the bias each.
  CHECK(net.program->logits()[0] == (12 + 16 + 24 + 28 + 4) / 4.0f);
}

TEST_CASE(
    "Reference: an average over the edge divides by the whole window, a maximum ignores the "
    "outside") {
  float pixels[] = {-1, -2, -3, -4, -5, -6, -7, -8, -9};
  int32_t labels[] = {0};
  Op average[] = {Pool{Pool::AVERAGE, 2, 2, 0, Pool::CEIL}, Pool{Pool::MAX, 2, 2, 0, Pool::CEIL}};
  Loaded averaged(chain({1, 3, 3}, average), 1);
  averaged.program->setBatch(pixels, labels, nullptr);
  averaged.step(Phase::VALIDATE);
  // Of -12/4, -9/4, -15/4 and -9/4, where windows over the edge count what is outside as 0.
  CHECK(averaged.program->logits()[0] == -2.25f);
  Op maximum[] = {Pool{Pool::MAX, 2, 2, 1, Pool::FLOOR}, Pool{Pool::AVERAGE, 2, 2, 0, Pool::CEIL}};
  Loaded padded(chain({1, 3, 3}, maximum), 1);
  padded.program->setBatch(pixels, labels, nullptr);
  padded.step(Phase::VALIDATE);
  CHECK(padded.program->logits()[0] == (-1 - 2 - 4 - 5) / 4.0f);
}

TEST_CASE("Reference: the first of equal maxima gets the gradient") {
  Op ops[] = {Conv2d{1, 1, 1, 0, false}, Pool{Pool::MAX, 2, 2, 0, Pool::FLOOR}, Dense{2, false}};
  Loaded net(chain({1, 2, 2}, ops), 1);
  // A convolution by 0 makes all pixels equal; its gradient shows which of them was taken.
  float values[] = {0, 1, -1};
  for (uint i = 0; i < 3; ++i) net.program->parameters()[i] = values[i];
  float pixels[] = {5, 7, 9, 11};
  int32_t labels[] = {0};
  net.program->setBatch(pixels, labels, nullptr);
  net.step(Phase::TRAIN);
  CHECK(net.program->gradients()[0] == -0.5f * 5 - 0.5f * 5);
}

TEST_CASE(
    "Reference: training moves statistics by the batch's biased ones, and validation uses them") {
  Op ops[] = {BatchNorm{1e-3f, 0.9f, false}};
  Loaded net(chain({2, 1, 1}, ops), 2);
  float pixels[] = {1, 10, 3, 20};
  int32_t labels[] = {0, 1};
  net.program->setBatch(pixels, labels, nullptr);
  net.step(Phase::TRAIN);
  CHECK(net.program->logits()[0] == doctest::Approx(-1 / std::sqrt(1.001)));
  auto moving = net.program->statistics();
  CHECK(moving[0] == doctest::Approx(0.1 * 2));
  CHECK(moving[1] == doctest::Approx(0.1 * 15));
  CHECK(moving[2] == doctest::Approx(0.9 + 0.1 * 1));
  CHECK(moving[3] == doctest::Approx(0.9 + 0.1 * 25));
  float mean = moving[0], variance = moving[2];
  net.step(Phase::VALIDATE);
  CHECK(net.program->logits()[0] == doctest::Approx((1 - mean) / std::sqrt(variance + 0.001)));
  CHECK(net.program->statistics()[0] == mean);
}

TEST_CASE("Reference: NaN passes through ReLU to the loss") {
  Op ops[] = {Dense{2, true}, Activation{Activation::RELU}};
  Loaded net(chain({1, 1, 1}, ops), 1);
  float pixels[] = {NAN};
  int32_t labels[] = {0};
  net.program->setBatch(pixels, labels, nullptr);
  CHECK(std::isnan(net.step(Phase::VALIDATE).lossSum));
}

TEST_CASE("Reference: a label that is not a class is refused") {
  Op ops[] = {Dense{2, true}};
  Loaded net(chain({1, 1, 1}, ops), 1);
  float pixels[] = {1};
  int32_t labels[] = {2};
  CHECK_THROWS_AS(net.program->setBatch(pixels, labels, nullptr), kj::Exception);
}

TEST_CASE("Reference: thirty steps of a small MLP lower the loss to a tenth") {
  configs::Diagnostics diagnostics;
  GraphBuilder builder({1, 6, 6}, diagnostics);
  Loaded net(
      builder.finish(addLayers(builder, NETWORKS[0].layers(4, {}), 0, CONVENTIONS[0]), {}), 16);
  configs::Random random(7, configs::Purpose::ORDER);
  auto pixels = kj::heapArray<float>(16 * 36);
  for (float& pixel: pixels) pixel = float(random.normal());
  auto labels = kj::heapArray<int32_t>(16);
  for (int32_t& label: labels) label = random.below(4);
  net.program->setBatch(pixels, labels, nullptr);

  double first = net.step(Phase::TRAIN).lossSum, last = first;
  for (uint step = 0; step < 30; ++step) {
    for (size_t i = 0; i < net.graph.parameters; ++i) {
      net.program->parameters()[i] -= 0.1f / 16 * net.program->gradients()[i];
    }
    last = net.step(Phase::TRAIN).lossSum;
  }
  CHECK(first / 16 == doctest::Approx(std::log(4)).epsilon(0.5));
  CHECK(last < first / 10);
}

}  // namespace
}  // namespace nn

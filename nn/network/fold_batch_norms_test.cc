#include "nn/network/fold_batch_norms.h"

#include <doctest/doctest.h>

#include <cmath>

#include "configs/language/random.h"
#include "nn/reference/reference.h"

namespace nn {
namespace {

constexpr uint BATCH = 3;
constexpr Conv2d CONV = {.filters = 5, .kernel = 3, .stride = 2, .pad = 1, .bias = false};
constexpr BatchNorm NORM = {.epsilon = 1e-3f, .momentum = 0.9f, .fixedGamma = false};

// Builds graphs from calls in a row, each of which returns its node.
struct Draft {
  configs::Diagnostics diagnostics;
  GraphBuilder builder{Shape{3, 7, 6}, diagnostics};

  NodeId add(kj::StringPtr name, Op op, NodeId input) {
    return builder.add(name, kj::mv(op), kj::arrayPtr(&input, 1), {});
  }
  Graph finish(NodeId logits) {
    auto graph = builder.finish(logits, {});
    REQUIRE(diagnostics.count() == 0);
    return graph;
  }
};

// Values as in the middle of training: no gamma is 1, no bias, beta or mean 0, and variances are
// positive.
struct Values {
  kj::Array<float> parameters, statistics;

  explicit Values(const Graph& graph)
      : parameters(kj::heapArray<float>(graph.parameters)),
        statistics(kj::heapArray<float>(graph.statisticsSize)) {
    configs::Random random(1, configs::Purpose::INITIAL_VALUES);
    for (float& value: parameters) value = float(0.5 * random.normal());
    for (float& value: statistics) value = float(0.2 + random.uniform());
  }
};

kj::Array<float> logits(const Graph& graph, kj::ArrayPtr<const float> parameters,
    kj::ArrayPtr<const float> statistics) {
  auto program = REFERENCE.lower(graph, {.batchSize = BATCH});
  REQUIRE(program->parameters().size() == parameters.size());
  REQUIRE(program->statistics().size() == statistics.size());
  std::copy(parameters.begin(), parameters.end(), program->parameters().begin());
  std::copy(statistics.begin(), statistics.end(), program->statistics().begin());
  configs::Random random(2, configs::Purpose::ORDER);
  auto pixels = kj::heapArray<float>(BATCH * graph.inputShape().size());
  for (float& pixel: pixels) pixel = float(random.normal());
  int32_t labels[BATCH] = {};
  program->setBatch(pixels, labels, nullptr);
  for (uint s = 0; s < graph.segments.size(); ++s) program->forward(Phase::VALIDATE, s);
  return kj::heapArray<float>(program->logits());
}

// Folds `graph`, checks that its logits stay the same, and returns the result.
FoldedNetwork foldAndCompare(const Graph& graph) {
  Values values(graph);
  auto folded = foldBatchNorms(graph, values.parameters, values.statistics);
  auto before = logits(graph, values.parameters, values.statistics);
  auto after = logits(folded.graph, folded.parameters, folded.statistics);
  REQUIRE(after.size() == before.size());
  for (size_t i = 0; i < before.size(); ++i) {
    CHECK(after[i] == doctest::Approx(before[i]).epsilon(1e-5));
  }
  return folded;
}

kj::String namesOf(const Graph& graph) {
  return kj::strArray(
      KJ_MAP(node, graph.nodes) { return kj::str(node.name); }, " ");
}

TEST_CASE("Folding: batch norms go into the convolution or dense layer before them") {
  Draft draft;
  auto x = draft.add("conv1", CONV, 0);
  x = draft.add("bn1", NORM, x);
  x = draft.add("relu1", Activation{Activation::RELU}, x);
  auto withBias = CONV;
  withBias.bias = true;
  x = draft.add("conv2", withBias, x);
  auto fixed = NORM;
  fixed.fixedGamma = true;
  x = draft.add("bn2", fixed, x);
  x = draft.add("fc1", Dense{4, false}, x);
  x = draft.add("bn3", NORM, x);
  auto folded = foldAndCompare(draft.finish(x));
  CHECK(namesOf(folded.graph) == "data conv1 relu1 conv2 fc1 loss");
  CHECK(folded.graph.statisticsSize == 0);
  auto keys = kj::strArray(
      KJ_MAP(key, folded.graph.keys) { return kj::str(key.name); }, " ");
  CHECK(keys == "conv1_weight conv1_bias conv2_weight conv2_bias fc1_weight fc1_bias");
}

TEST_CASE("Folding: a batch norm stays where no layer before it can absorb it") {
  Draft draft;
  auto images = draft.add("on_images", NORM, 0);
  auto conv = draft.add("conv", CONV, images);
  // The convolution has a second reader, which needs its values without the norm.
  auto norm = draft.add("second_reader", NORM, conv);
  auto relu = draft.add("relu", Activation{Activation::RELU}, norm);
  auto behind = draft.add("behind_relu", NORM, relu);
  NodeId branches[] = {conv, behind};
  auto sum = draft.builder.add("sum", Add{}, branches, {});
  auto graph = draft.finish(draft.add("fc", Dense{4, true}, sum));
  auto folded = foldAndCompare(graph);
  CHECK(namesOf(folded.graph) == namesOf(graph));
  CHECK(folded.graph.statisticsSize == graph.statisticsSize);
}

TEST_CASE("Folding: branches that read a batch norm read the layer with the norm in it") {
  Draft draft;
  auto first = draft.add("bn1", NORM, draft.add("conv1", CONV, 0));
  Conv2d same = {.filters = 5, .kernel = 1, .stride = 1, .pad = 0, .bias = false};
  auto second = draft.add("bn2", NORM, draft.add("conv2", same, first));
  NodeId added[] = {first, second};
  auto sum = draft.builder.add("sum", Add{}, added, {});
  auto kept = draft.add("bn3", NORM, sum);
  NodeId joined[] = {kept, first};
  auto concat = draft.builder.add("concat", Concat{}, joined, {});
  auto folded = foldAndCompare(draft.finish(draft.add("fc", Dense{4, true}, concat)));
  CHECK(namesOf(folded.graph) == "data conv1 conv2 sum bn3 concat fc loss");
  CHECK(folded.graph.statistics[0].name == "bn3_moving_mean");
}

TEST_CASE("Folding: classes keep their names, and arrays of another graph are refused") {
  Draft draft;
  auto graph = draft.finish(draft.add("fc", Dense{2, true}, 0));
  graph.classNames = kj::arr(kj::str("cat"), kj::str("dog"));
  Values values(graph);
  auto folded = foldBatchNorms(graph, values.parameters, values.statistics);
  CHECK(kj::strArray(folded.graph.classNames, " ") == "cat dog");
  CHECK_THROWS_AS(
      foldBatchNorms(graph, values.parameters.slice(1, 3), values.statistics), kj::Exception);
}

}  // namespace
}  // namespace nn

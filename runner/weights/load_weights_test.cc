#include "runner/weights/load_weights.h"

#include <math.h>

#include "nn/network/networks.h"
#include "runner/checkpoints/weights.h"
#include "runner/system/files.h"
#include "runner/system/reason.h"
#include "tests/command.h"
#include "tests/text.h"

namespace runner {
namespace {

using tests::contains;

// lenet-bn over images of 28×28 with one channel.
nn::Graph graphWith(uint classes) {
  configs::Diagnostics diagnostics;
  nn::GraphBuilder builder({1, 28, 28}, diagnostics);
  nn::NodeId last = 0;
  for (auto& network: nn::NETWORKS) {
    if (network.name == "lenet-bn"_kj) {
      last = nn::addLayers(builder, network.layers(classes, {}), 0, nn::CONVENTIONS[0]);
    }
  }
  auto graph = builder.finish(last, {});
  REQUIRE(diagnostics.count() == 0);
  return graph;
}

// The flat arrays of a network. Value i is `first` + i.
struct Values {
  Values(const nn::Graph& graph, float first)
      : parameters(kj::heapArray<float>(graph.parameters)),
        statistics(kj::heapArray<float>(graph.statisticsSize)) {
    float next = first;
    for (auto& x: parameters) x = next++;
    for (auto& x: statistics) x = next++;
  }

  kj::Array<float> parameters, statistics;
};

WeightsFile written(const kj::StringPtr folder, const nn::Graph& graph, Values& values) {
  auto path = kj::str(folder, "/w.safetensors");
  writeWeights(path, graph, "d", values.parameters, values.statistics);
  return openWeights(path);
}

TEST_CASE("Load: what was written comes back in the same places") {
  auto folder = tests::newFolder();
  auto graph = graphWith(10);
  Values saved(graph, 1), found(graph, -1e6);
  auto file = written(folder, graph, saved);
  auto report = loadWeights(file, graph, nullptr, found.parameters, found.statistics);
  CHECK(found.parameters == saved.parameters);
  CHECK(found.statistics == saved.statistics);
  CHECK(report.loaded.size() == graph.keys.size() + graph.statistics.size());
  CHECK(report.whyIncomplete() == nullptr);
  CHECK(report.text() == "loaded 14 arrays");
}

TEST_CASE("Load: skipped arrays keep their values, and other shapes then do no harm") {
  auto folder = tests::newFolder();
  auto ten = graphWith(10), five = graphWith(5);
  Values saved(ten, 1), found(five, -1e6);
  auto file = written(folder, ten, saved);

  auto whole = loadWeights(file, five, nullptr, found.parameters, found.statistics);
  CHECK(KJ_ASSERT_NONNULL(whole.whyIncomplete()) ==
        "`fc_weight` has the shape 10×128 there, but the network's has 5×128 (and 1 more)");

  kj::String skip[] = {kj::str("fc_*")};
  auto report = loadWeights(file, five, skip, found.parameters, found.statistics);
  CHECK(report.whyIncomplete() == nullptr);
  CHECK(report.text() == "loaded 12 arrays; skipped fc_weight, fc_bias");
  auto& last = five.keys.back();
  CHECK(last.name == "fc_bias");
  CHECK(found.parameters[last.offset] == -1e6f + float(last.offset));
  CHECK(found.parameters[0] == 1);
}

TEST_CASE("Load: a value that is not finite is an error that names its array") {
  auto folder = tests::newFolder();
  auto graph = graphWith(10);
  Values saved(graph, 1), found(graph, 0);
  saved.parameters[graph.keys.back().offset + 3] = NAN;
  auto file = written(folder, graph, saved);
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() {
                loadWeights(file, graph, nullptr, found.parameters, found.statistics);
              })) {
    CHECK(contains(reasonOf(*e), "w.safetensors: `fc_bias` holds nan"));
  } else {
    FAIL("a NaN was loaded");
  }
}

TEST_CASE("Load: weights of another network are named as such") {
  auto folder = tests::newFolder();
  auto graph = graphWith(10);
  auto path = kj::str(folder, "/other.safetensors");
  Tensor tensors[] = {{kj::str("embed"), "F32"_kj, kj::str("1"), 4}};
  auto head = safetensorsHead(nullptr, tensors);
  float one = 1;
  kj::ArrayPtr<const kj::byte> pieces[] = {head, kj::arrayPtr(&one, 1).asBytes()};
  writeWhole(path, pieces);
  Values found(graph, 0);
  auto report = loadWeights(openWeights(path), graph, nullptr, found.parameters, found.statistics);
  CHECK(contains(KJ_ASSERT_NONNULL(report.whyIncomplete()),
      "none of its 1 arrays (embed) belongs to this network, which has conv1_weight"));
}

TEST_CASE("Load: a folder without weights, and a file that is no such file, say what to do") {
  auto folder = tests::newFolder();
  auto complaint = [&](kj::StringPtr path) {
    KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { openWeights(path); })) return reasonOf(*e);
    return kj::str();
  };
  CHECK(contains(complaint(folder), " is not a run: it has no events.jsonl. Name"));
  CHECK(contains(complaint("/nowhere/7"), "cannot find the weights /nowhere/7: No such file"));
  auto events = kj::str(folder, "/events.jsonl");
  tests::writeFile(events, "\n");
  CHECK(contains(complaint(folder), " has no weights yet: it has not finished"));
  CHECK(contains(complaint(events), "events.jsonl is not a file of weights: it is cut short"));
}

}  // namespace
}  // namespace runner

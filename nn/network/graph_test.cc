#include "nn/network/graph.h"

#include <doctest/doctest.h>

#include "nn/network/networks.h"

namespace nn {
namespace {

Graph named(kj::StringPtr name, Shape input) {
  configs::Diagnostics diagnostics;
  GraphBuilder builder(input, diagnostics);
  NodeId last = 0;
  for (auto& network: NETWORKS) {
    if (network.name == name) {
      last = addLayers(builder, network.layers(10, {}), 0, CONVENTIONS[0]);
    }
  }
  Graph graph = builder.finish(last, {});
  REQUIRE(diagnostics.count() == 0);
  return graph;
}

kj::String nodesOf(const Graph& graph, const Segment& segment) {
  auto names = kj::heapArray<kj::String>(segment.nodes.size());
  for (size_t i = 0; i < names.size(); ++i) {
    names[i] = kj::str(graph.nodes[segment.nodes.begin + i].name);
  }
  return kj::strArray(names, " ");
}

TEST_CASE(
    "Graph: keys are in the order of the layers, without gaps, weight before bias before gamma") {
  auto graph = named("inception-bn-28-small", {3, 28, 28});
  uint64_t offset = 0;
  for (auto& key: graph.keys) {
    CHECK(key.offset == offset);
    CHECK(key.size == uint64_t(key.rows) * key.cols);
    offset += key.size;
  }
  CHECK(offset == graph.parameters);

  kj::StringPtr first[] = {"conv1_weight", "conv1_bias", "conv1_bn_gamma", "conv1_bn_beta",
      "in3a_1x1_weight", "in3a_1x1_bias", "in3a_1x1_bn_gamma", "in3a_1x1_bn_beta",
      "in3a_3x3_weight"};
  for (size_t i = 0; i < kj::size(first); ++i) CHECK(graph.keys[i].name == first[i]);
  CHECK(graph.keys[0].rows == 96);
  CHECK(graph.keys[0].cols == 27);
  CHECK(graph.keys.back().name == "fc_bias");
  CHECK(graph.statistics[0].name == "conv1_bn_moving_mean");
  CHECK(graph.statistics[0].initialValue == 0);
  CHECK(graph.statistics[1].name == "conv1_bn_moving_var");
  CHECK(graph.statistics[1].initialValue == 1);
}

TEST_CASE("Graph: inception is cut into segments where only a single tensor crosses") {
  auto graph = named("inception-bn-28-small", {3, 28, 28});
  REQUIRE(graph.segments.size() == 12);
  CHECK(nodesOf(graph, graph.segments[0]) == "data conv1 conv1_bn conv1_relu");
  CHECK(nodesOf(graph, graph.segments[1]) ==
        "in3a_1x1 in3a_1x1_bn in3a_1x1_relu in3a_3x3 in3a_3x3_bn in3a_3x3_relu in3a_concat");
  CHECK(nodesOf(graph, graph.segments[3]) ==
        "in3c_3x3 in3c_3x3_bn in3c_3x3_relu in3c_pool in3c_concat");
  CHECK(nodesOf(graph, graph.segments[10]) ==
        "in5b_1x1 in5b_1x1_bn in5b_1x1_relu in5b_3x3 in5b_3x3_bn in5b_3x3_relu in5b_concat "
        "global_pool");
  CHECK(nodesOf(graph, graph.segments[11]) == "fc loss");

  uint64_t sizes[] = {
      2880, 30912, 29936, 57840, 87520, 108000, 128480, 146352, 124704, 388848, 543984, 3370};
  uint64_t node = 0, parameter = 0;
  for (size_t i = 0; i < kj::size(sizes); ++i) {
    auto& segment = graph.segments[i];
    CHECK(segment.nodes.begin == node);
    CHECK(segment.parameters.begin == parameter);
    CHECK(segment.parameters.size() == sizes[i]);
    node = segment.nodes.end;
    parameter = segment.parameters.end;
  }
  CHECK(node == graph.nodes.size());
  CHECK(parameter == graph.parameters);
}

TEST_CASE("Graph: layers without parameters before the first weight belong to its segment") {
  configs::Diagnostics diagnostics;
  GraphBuilder builder({1, 4, 4}, diagnostics);
  NodeId data = 0;
  NodeId relu = builder.add("", Activation{Activation::RELU}, kj::arrayPtr(&data, 1), {});
  NodeId dense = builder.add("", Dense{3, true}, kj::arrayPtr(&relu, 1), {});
  auto graph = builder.finish(dense, {});
  REQUIRE(graph.segments.size() == 1);
  CHECK(nodesOf(graph, graph.segments[0]) == "data activation0 dense0 loss");
}

TEST_CASE("Graph: a shortcut keeps its branch in one segment") {
  configs::Diagnostics diagnostics;
  GraphBuilder builder({1, 4, 4}, diagnostics);
  auto one = [](const NodeId& id) { return kj::arrayPtr(&id, 1); };
  NodeId data = 0;
  NodeId a = builder.add("a", Conv2d{3, 3, 1, 1, true}, one(data), {});
  NodeId b = builder.add("b", Conv2d{3, 3, 1, 1, true}, one(a), {});
  NodeId c = builder.add("c", Conv2d{3, 3, 1, 1, true}, one(b), {});
  NodeId ends[] = {c, a};
  NodeId sum = builder.add("sum", Add(), ends, {});
  NodeId dense = builder.add("fc", Dense{3, true}, one(sum), {});
  auto graph = builder.finish(dense, {});
  REQUIRE(graph.segments.size() == 3);
  CHECK(nodesOf(graph, graph.segments[0]) == "data a");
  CHECK(nodesOf(graph, graph.segments[1]) == "b c sum");
  CHECK(nodesOf(graph, graph.segments[2]) == "fc loss");
}

TEST_CASE("Graph: a segment begins at each weight before which a single tensor crosses") {
  // Every node reads an earlier one, and some read two: far and near ones.
  configs::Diagnostics diagnostics;
  GraphBuilder builder({2, 1, 1}, diagnostics);
  uint state = 1;
  auto random = [&](uint below) { return (state = state * 1103515245 + 12345) / 65536 % below; };
  NodeId last = 0;
  for (uint i = 0; i < 300; ++i) {
    NodeId ends[] = {last, last - kj::min(last, random(8))};
    last = random(3) == 0 ? builder.add("", Add(), ends, {})
                          : builder.add("", Dense{2, false}, kj::arrayPtr(ends, 1), {});
  }
  auto graph = builder.finish(last, {});

  kj::Vector<uint64_t> expected, begins;
  expected.add(0);
  bool isFirstWeight = true;
  for (NodeId i = 1; i < graph.nodes.size(); ++i) {
    if (!graph.nodes[i].op.is<Dense>()) continue;
    kj::Vector<NodeId> crossing;
    for (NodeId earlier = 0; earlier < i; ++earlier) {
      bool isRead = false;
      for (NodeId later = i; later < graph.nodes.size(); ++later) {
        for (NodeId input: graph.nodes[later].inputs) isRead = isRead || input == earlier;
      }
      if (isRead) crossing.add(earlier);
    }
    if (crossing.size() == 1 && !isFirstWeight) expected.add(i);
    isFirstWeight = false;
  }
  for (auto& segment: graph.segments) begins.add(segment.nodes.begin);
  CHECK(expected.size() > 30);
  CHECK(begins.size() < 200);
  CHECK(begins.asPtr() == expected.asPtr());
}

TEST_CASE("Graph: a node without a name gets a number that no other node has") {
  configs::Diagnostics diagnostics;
  GraphBuilder builder({1, 4, 4}, diagnostics);
  NodeId last = 0;
  for (auto name: {"dense1", "", "", "dense0", "", "dense2"}) {
    last = builder.add(name, Dense{3, true}, kj::arrayPtr(&last, 1), {});
  }
  auto graph = builder.finish(last, {});
  CHECK(nodesOf(graph, {.nodes = {1, 7}}) == "dense1 dense2 dense3 dense0 dense4 dense2");
  // The name of the second one was taken when the last one asked for it.
  REQUIRE(diagnostics.count() == 1);
  CHECK(
      diagnostics.all()[0].message == "an earlier layer without a name is called `dense2` already");
}

TEST_CASE("Graph: reports every misfit, but nothing that follows from one") {
  configs::Diagnostics diagnostics;
  GraphBuilder builder({1, 4, 4}, diagnostics);
  auto one = [](const NodeId& id) { return kj::arrayPtr(&id, 1); };
  NodeId data = 0;
  NodeId a = builder.add("x", Conv2d{3, 5, 1, 0, true}, one(data), {});
  NodeId b = builder.add("x", Conv2d{3, 7, 1, 0, true}, one(data), {});
  NodeId behind = builder.add("y", Conv2d{3, 9, 1, 0, true}, one(b), {});
  NodeId both[] = {a, behind};
  builder.finish(builder.add("join", Concat(), both, {}), {});
  // Both kernels over the images, and the name given twice. The shapes after them are not known.
  CHECK(diagnostics.count() == 3);
}

TEST_CASE("Graph: a fixed gamma neither learns nor decays") {
  configs::Diagnostics diagnostics;
  GraphBuilder builder({2, 1, 1}, diagnostics);
  NodeId data = 0;
  NodeId norm = builder.add("bn", BatchNorm{1e-3f, 0.9f, true}, kj::arrayPtr(&data, 1), {});
  auto graph = builder.finish(norm, {});
  CHECK(graph.keys[0].learningRateFactor == 0);
  CHECK(graph.keys[0].decayFactor == 0);
  CHECK(graph.keys[1].learningRateFactor == 1);
  CHECK(graph.keys[1].decayFactor == 1);
}

}  // namespace
}  // namespace nn

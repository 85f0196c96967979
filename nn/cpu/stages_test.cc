#include "nn/cpu/stages.h"

#include <doctest/doctest.h>

namespace nn::cpu {
namespace {

struct Net {
  configs::Diagnostics diagnostics;
  GraphBuilder builder;

  explicit Net(Shape input): builder(input, diagnostics) {}
  NodeId add(Op op, std::initializer_list<NodeId> inputs) {
    return builder.add("", kj::mv(op), kj::arrayPtr(inputs.begin(), inputs.size()), {});
  }
  NodeId conv(NodeId x) { return add(Conv2d{16, 3, 1, 1, true}, {x}); }
  NodeId norm(NodeId x) { return add(BatchNorm{1e-3f, 0.9f, false}, {x}); }
  NodeId relu(NodeId x) { return add(Activation{Activation::RELU}, {x}); }
  NodeId tanh(NodeId x) { return add(Activation{Activation::TANH}, {x}); }
  NodeId dense(NodeId x) { return add(Dense{10, true}, {x}); }
};

TEST_CASE("stages: a unit takes the activation after it if nothing else reads the unit") {
  Net net({3, 8, 8});
  auto x = net.conv(0);
  net.tanh(x);
  auto y = net.relu(net.conv(net.relu(net.norm(net.tanh(x)))));
  Graph graph = net.builder.finish(net.dense(net.tanh(net.norm(y))), {});
  auto stages = stagesOf(graph, Phase::TRAIN);
  uint alone = 0, fused = 0;
  for (auto& unit: stages.units) {
    alone += unit.is<Activation>();
    fused += unit.activation != nullptr;
  }
  // Not taken: both activations that read x, and a tanh after a batch norm.
  CHECK(alone == 3);
  CHECK(fused == 2);
}

TEST_CASE("stages: a stage ends at a batch norm and at the end of a segment") {
  Net net({3, 8, 8});
  auto x = net.relu(net.norm(net.conv(0)));
  Graph graph = net.builder.finish(net.dense(net.relu(net.norm(net.conv(x)))), {});
  REQUIRE(graph.segments.size() == 3);
  auto stages = stagesOf(graph, Phase::TRAIN);
  for (uint s = 0; s < 3; ++s) {
    CHECK(stages.forward[s].size() == 1);
    CHECK(stages.backward[s].size() == 1);
  }
  // Backward stages are numbered after the forward stages, from the last segment on.
  CHECK(stages.backward[2].begin == stages.forward[2].end);
  CHECK(stages.backward[0].begin == 5);
}

TEST_CASE("stages: a segment without batch norms is one stage") {
  Net net({3, 8, 8});
  auto x = net.tanh(net.conv(0));
  auto y = net.add(Add{}, {net.conv(x), net.conv(net.tanh(net.conv(x))), x});
  Graph graph = net.builder.finish(net.dense(y), {});
  auto stages = stagesOf(graph, Phase::TRAIN);
  for (auto& range: stages.forward) CHECK(range.size() == 1);
}

TEST_CASE("stages: two batch norms in a row inside a segment take one stage each") {
  Net net({3, 8, 8});
  auto x = net.tanh(net.conv(0));
  // Both branches are one segment: x crosses it.
  auto y = net.add(Add{}, {x, net.norm(net.conv(net.relu(net.norm(net.conv(x)))))});
  Graph graph = net.builder.finish(net.dense(y), {});
  auto stages = stagesOf(graph, Phase::TRAIN);
  CHECK(stages.forward[1].size() == 3);
}

TEST_CASE("stages: only the bias of a layer that nothing but a batch norm reads is inert") {
  Net net({3, 8, 8});
  auto a = net.conv(0), b = net.conv(0), c = net.conv(0);
  auto sum = net.add(Add{}, {net.norm(a), net.norm(b), b, net.norm(net.relu(c))});
  Graph graph = net.builder.finish(net.dense(sum), {});
  auto stages = stagesOf(graph, Phase::TRAIN);
  for (auto& unit: stages.units) {
    CHECK(unit.biasIsInert == (unit.node == &graph.nodes[a]));
  }
}

TEST_CASE("stages: a concat is stored if a batch norm or another concat reads it") {
  Net net({3, 8, 8});
  auto a = net.conv(0), b = net.conv(0);
  auto first = net.add(Concat{}, {a, b});
  auto second = net.add(Concat{}, {first, net.conv(first)});
  auto third = net.add(Concat{}, {second, net.norm(second)});
  Graph graph = net.builder.finish(net.dense(third), {});
  auto stages = stagesOf(graph, Phase::TRAIN);
  for (auto& unit: stages.units) {
    if (unit.is<Concat>()) CHECK(unit.recomputed == (unit.node == &graph.nodes[third]));
  }
}

TEST_CASE("stages: validation folds batch norms into convolutions, and has one stage per segment") {
  Net net({3, 8, 8});
  auto x = net.relu(net.norm(net.conv(0)));
  auto dropped = net.add(Dropout{0.5}, {x});
  // Folded are the first batch norm, and the one of a convolution that nothing else reads.
  auto both = net.conv(net.relu(dropped));
  auto y = net.add(Add{}, {net.norm(both), both, net.tanh(net.norm(net.conv(dropped)))});
  Graph graph = net.builder.finish(net.dense(y), {});
  auto stages = stagesOf(graph, Phase::VALIDATE);
  uint folded = 0, norms = 0;
  for (auto& unit: stages.units) {
    folded += unit.folded != nullptr;
    norms += unit.is<BatchNorm>();
    CHECK(!unit.is<Dropout>());
  }
  CHECK(folded == 2);
  CHECK(norms == 1);
  for (auto& stages: stages.forward) CHECK(stages.size() == 1);
  for (auto& stages: stages.backward) CHECK(stages.size() == 0);
}

}  // namespace
}  // namespace nn::cpu

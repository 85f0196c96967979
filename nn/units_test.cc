#include "nn/units.h"

#include <doctest/doctest.h>

namespace nn {
namespace {

constexpr Fusion FUSION = {
    .takesActivation = [](const Unit&, Activation::Function) { return true; }};

struct Net {
  configs::Diagnostics diagnostics;
  GraphBuilder builder;

  explicit Net(Shape input): builder(input, diagnostics) {}
  NodeId add(Op op, std::initializer_list<NodeId> inputs) {
    return builder.add("", kj::mv(op), kj::arrayPtr(inputs.begin(), inputs.size()), {});
  }
  NodeId conv(NodeId x) { return add(Conv2d{16, 3, 1, 1, true}, {x}); }
  NodeId relu(NodeId x) { return add(Activation{Activation::RELU}, {x}); }
  NodeId tanh(NodeId x) { return add(Activation{Activation::TANH}, {x}); }
  NodeId dense(NodeId x) { return add(Dense{10, true}, {x}); }
};

TEST_CASE(
    "units: logits of a dense layer stay float32, and so do units between them and the loss") {
  for (bool isReadTwice: {false, true}) {
    Net net({3, 8, 8});
    auto hidden = net.tanh(net.dense(net.conv(0)));
    auto last = net.dense(hidden);
    auto logits = net.add(Scale{0.5f}, {net.tanh(last)});
    if (isReadTwice) net.relu(last);
    Graph graph = net.builder.finish(logits, {});
    auto units = unitsOf(graph, Phase::TRAIN, FUSION);
    uint floats = 0;
    for (auto& unit: units) {
      floats += unit.staysFloats;
      CHECK((!unit.staysFloats || unit.node >= &graph.nodes[last]));
    }
    // The dense layer with its tanh, and the scale.
    CHECK(floats == (isReadTwice ? 0 : 2));
  }
}

TEST_CASE("units: validation leaves dropout out, also between a unit and its activation") {
  Net net({3, 8, 8});
  Graph graph = net.builder.finish(net.dense(net.relu(net.add(Dropout{0.5}, {net.conv(0)}))), {});
  // Input, convolution, dropout with its ReLU, dense layer, loss.
  CHECK(unitsOf(graph, Phase::TRAIN, FUSION).size() == 5);
  auto units = unitsOf(graph, Phase::VALIDATE, FUSION);
  REQUIRE(units.size() == 4);
  CHECK(units[1].is<Conv2d>());
  CHECK(units[1].activation != nullptr);
  CHECK(units[2].inputs[0] == 1);
}

TEST_CASE("units: a max pool takes the activation before it if nothing else reads its output") {
  constexpr Pool MAX = {Pool::MAX, 2, 2, 0, Pool::FLOOR},
                 AVERAGE = {Pool::AVERAGE, 2, 2, 0, Pool::FLOOR};
  struct Case {
    Activation::Function function;
    Pool pool;
    bool isReadTwice;
    bool moves;
  };
  for (auto& c: {Case{Activation::TANH, MAX, false, true}, Case{Activation::RELU, MAX, false, true},
           Case{Activation::GELU, MAX, false, false}, Case{Activation::TANH, AVERAGE, false, false},
           Case{Activation::TANH, MAX, true, false}}) {
    Net net({3, 8, 8});
    auto active = net.add(Activation{c.function}, {net.conv(0)});
    auto pooled = net.add(c.pool, {active});
    auto logits = net.dense(pooled);
    if (c.isReadTwice) net.relu(active);
    Graph graph = net.builder.finish(logits, {});
    auto units = unitsOf(graph, Phase::TRAIN, FUSION);
    CHECK((units[1].activation == nullptr) == c.moves);
    CHECK((units[2].activation != nullptr) == c.moves);
  }
}

TEST_CASE("units: a unit trains only if it depends on parameters and the loss depends on it") {
  Net net({3, 8, 8});
  auto before = net.add(Scale{0.5f}, {0});
  auto logits = net.dense(net.conv(before));
  net.conv(before);
  Graph graph = net.builder.finish(logits, {});
  for (auto& unit: unitsOf(graph, Phase::TRAIN, FUSION)) {
    CHECK(unit.trains ==
          (unit.nodeId == 2 || unit.nodeId == logits || unit.is<SoftmaxCrossEntropy>()));
  }
}

}  // namespace
}  // namespace nn

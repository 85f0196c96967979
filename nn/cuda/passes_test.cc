#include "nn/cuda/passes.h"

#include <doctest/doctest.h>

#include "configs/language/diagnostics.h"

namespace nn::cuda {
namespace {

// "conv2d(input) relu; …": each unit with its inputs, and the ops that it includes.
kj::String textOf(kj::ArrayPtr<const Unit> units) {
  auto texts = KJ_MAP(unit, units) {
    auto inputs = KJ_MAP(input, unit.inputs) {
      return kj::str(units[input].node->name);
    };
    constexpr kj::StringPtr FUNCTIONS[] = {
        ""_kj, " relu"_kj, " tanh"_kj, " sigmoid"_kj, " elu"_kj, " gelu"_kj};
    return kj::str(unit.node->name, "(", kj::strArray(inputs, ","), ")",
        FUNCTIONS[uint(functionOf(unit))], unit.staysFloats ? " float" : "",
        unit.trains ? "" : " -");
  };
  return kj::strArray(texts, "; ");
}

struct Network {
  configs::Diagnostics diagnostics;
  GraphBuilder builder{Shape{3, 8, 8}, diagnostics};

  NodeId add(kj::StringPtr name, Op op, std::initializer_list<NodeId> inputs) {
    return builder.add(name, op, kj::arrayPtr(inputs.begin(), inputs.size()), {});
  }
  NodeId conv(kj::StringPtr name, NodeId input) {
    return add(name, Conv2d{8, 3, 1, 1, false}, {input});
  }
  NodeId norm(kj::StringPtr name, NodeId input) {
    return add(name, BatchNorm{1e-5f, 0.9f, false}, {input});
  }
  NodeId apply(kj::StringPtr name, Activation::Function function, NodeId input) {
    return add(name, Activation{function}, {input});
  }
  Graph finish(NodeId last) {
    auto graph = builder.finish(add("dense", Dense{4, true}, {last}), {});
    REQUIRE(diagnostics.count() == 0);
    return graph;
  }
};

kj::String textOf(const Graph& graph) {
  return textOf(unitsOf(graph, Phase::TRAIN, FUSION));
}

TEST_CASE("Passes: a batch norm takes the activation after it, GELU included") {
  Network net;
  auto a = net.apply("relu", Activation::RELU, net.norm("n", net.conv("c", 0)));
  auto b = net.apply("gelu", Activation::GELU, net.norm("m", net.conv("d", a)));
  CHECK(textOf(net.finish(b)) ==
        "data() -; c(data); n(c) relu; d(n); m(d) gelu; dense(m) float; "
        "loss(dense)");
}

TEST_CASE(
    "Passes: a convolution takes no GELU, and no activation if another unit reads its output") {
  Network net;
  auto a = net.apply("tanh", Activation::TANH, net.conv("c", 0));
  auto b = net.apply("gelu", Activation::GELU, net.conv("d", a));
  auto c = net.conv("e", b);
  auto d = net.apply("relu", Activation::RELU, c);
  CHECK(textOf(net.finish(net.add("sum", Add{}, {c, d}))) ==
        "data() -; c(data) tanh; d(c); gelu(d); e(gelu); relu(e); sum(e,relu); dense(sum) float; "
        "loss(dense)");
}

TEST_CASE("Passes: the later of two batch norms takes their residual sum and its activation") {
  for (bool swapped: {false, true}) {
    CAPTURE(swapped);
    Network net;
    auto c = net.conv("c", 0);
    auto shortcut = net.norm("shortcut", net.conv("s", c));
    auto n = net.norm("n", net.conv("d", c));
    auto sum =
        swapped ? net.add("sum", Add{}, {n, shortcut}) : net.add("sum", Add{}, {shortcut, n});
    auto units = net.finish(net.apply("relu", Activation::RELU, sum));
    CHECK(textOf(units) ==
          "data() -; c(data); s(c); shortcut(s); d(c); n(d,shortcut) relu; dense(n) float; "
          "loss(dense)");
  }
}

}  // namespace
}  // namespace nn::cuda

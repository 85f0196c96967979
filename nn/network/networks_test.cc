#include "nn/network/networks.h"

#include <doctest/doctest.h>
#include <kj/debug.h>

#include "nn/network/model.h"

namespace nn {
namespace {

// A [model] section's text, read and built.
Graph built(kj::StringPtr text, Shape input, uint classes = 10) {
  configs::Diagnostics diagnostics;
  auto document = configs::parse("x.toml", text, diagnostics);
  configs::Reading reading{diagnostics, {}};
  auto config = configs::readDocument(*document, reading, ModelConfig::read);
  auto graph = buildGraph(config, input, classes, diagnostics);
  CHECK(diagnostics.format("x.toml") == "");
  return graph;
}

Graph named(kj::StringPtr name, Shape input, uint classes = 10) {
  return built(kj::str("network = \"", name, "\""), input, classes);
}

// All numbers of an op.
kj::String textOf(const Op& op) {
  KJ_SWITCH_ONEOF(op) {
    KJ_CASE_ONEOF(c, Conv2d) {
      return kj::str(c.filters, " ", c.kernel, " ", c.stride, " ", c.pad, " ", c.bias);
    }
    KJ_CASE_ONEOF(d, Dense) return kj::str(d.units, " ", d.bias);
    KJ_CASE_ONEOF(b, BatchNorm) {
      return kj::str(b.epsilon, " ", b.momentum, " ", b.fixedGamma, " ", b.movingMeanStart, " ",
          b.movingVarianceStart);
    }
    KJ_CASE_ONEOF(a, Activation) return kj::str(uint(a.function));
    KJ_CASE_ONEOF(s, Scale) return kj::str(s.factor);
    KJ_CASE_ONEOF(d, Dropout) return kj::str(d.rate);
    KJ_CASE_ONEOF(p, Pool) {
      return kj::str(
          uint(p.function), " ", p.kernel, " ", p.stride, " ", p.pad, " ", uint(p.rounding));
    }
    KJ_CASE_ONEOF(_, Input) return kj::str();
    KJ_CASE_ONEOF(_, Add) return kj::str();
    KJ_CASE_ONEOF(_, Concat) return kj::str();
    KJ_CASE_ONEOF(s, SoftmaxCrossEntropy) return kj::str(s.smoothing);
  }
  KJ_UNREACHABLE;
}

// The computation of a graph: one line per node, without names.
kj::String textOf(const Graph& graph) {
  auto lines = KJ_MAP(node, graph.nodes) {
    return kj::str(nameOf(node.op), "(", textOf(node.op), ") of ", kj::strArray(node.inputs, ","),
        " is ", node.shape, "\n");
  };
  return kj::strArray(lines, "");
}

// Checks that both have the same nodes, arrays and initial values.
void checkEqual(const Graph& a, const Graph& b) {
  CHECK(textOf(a) == textOf(b));
  REQUIRE(a.keys.size() == b.keys.size());
  for (size_t i = 0; i < a.keys.size(); ++i) {
    INFO(a.keys[i].name.cStr());
    CHECK(a.keys[i].size == b.keys[i].size);
    CHECK(a.keys[i].role == b.keys[i].role);
    CHECK(a.keys[i].learningRateFactor == b.keys[i].learningRateFactor);
    CHECK((a.keys[i].initializer == nullptr) == (b.keys[i].initializer == nullptr));
    KJ_IF_MAYBE(own, a.keys[i].initializer) {
      CHECK(*own == KJ_ASSERT_NONNULL(b.keys[i].initializer));
    }
  }
}

TEST_CASE("Networks: named networks have the published numbers of parameters and arrays") {
  struct Row {
    kj::StringPtr name;
    Shape input;
    uint classes;
    uint64_t parameters;
    size_t arrays;
    uint64_t statistics;
  };
  Row rows[] = {
      {"mlp", {1, 28, 28}, 10, 109386, 6, 0},
      {"lenet", {1, 28, 28}, 10, 431080, 8, 0},
      {"lenet-bn", {1, 28, 28}, 10, 10986, 10, 128},
      {"inception-bn-28-small", {3, 28, 28}, 10, 1652826, 78, 3424},
      {"inception-bn-28-small", {3, 32, 32}, 10, 1652826, 78, 3424},
      {"inception-bn", {3, 224, 224}, 1000, 11295240, 278, 20032},
      {"inception-bn", {3, 227, 227}, 1000, 11295240, 278, 20032},
      // 21, 33, … convolutions of four arrays each, two of which on shortcuts, and the last layer.
      {"resnet-20", {3, 28, 28}, 10, 273258, 4 * 21 + 2, 1568},
      {"resnet-20", {3, 32, 32}, 10, 273258, 4 * 21 + 2, 1568},
      {"resnet-32", {3, 28, 28}, 10, 468138, 4 * 33 + 2, 2464},
      {"resnet-56", {3, 28, 28}, 10, 857898, 4 * 57 + 2, 4256},
      {"resnet-110", {3, 28, 28}, 10, 1734858, 4 * 111 + 2, 8288},
      // A convolution and two arrays of batch norm each, one more batch norm, three shortcuts.
      {"resnet-20-v2", {3, 28, 28}, 10, 272544, 3 * 19 + 2 + 3 + 2, 1382},
      {"resnet-56-v2", {3, 28, 28}, 10, 855840, 3 * 55 + 2 + 3 + 2, 4070},
      {"resnet-110-v2", {3, 28, 28}, 10, 1730784, 3 * 109 + 2 + 3 + 2, 8102},
      // Convolutions with the two arrays of a batch norm each, and the last layer.
      {"resnet-18", {3, 224, 224}, 1000, 11689512, 3 * 20 + 2, 9600},
      {"resnet-34", {3, 224, 224}, 1000, 21797672, 3 * 36 + 2, 17024},
      {"resnet-50", {3, 224, 224}, 1000, 25557032, 3 * 53 + 2, 53120},
      {"airbench94", {3, 32, 32}, 10, 1972792, 2 + 6 * 3 + 1, 2304},
  };
  for (auto& row: rows) {
    INFO(row.name.cStr());
    auto graph = named(row.name, row.input, row.classes);
    CHECK(graph.parameters == row.parameters);
    CHECK(graph.keys.size() == row.arrays);
    CHECK(graph.statisticsSize == row.statistics);
  }
}

TEST_CASE("Networks: every network can be built with every convention") {
  for (auto& network: NETWORKS) {
    for (auto& conventions: CONVENTIONS) {
      Shape input = network.name == "inception-bn"_kj ? Shape{3, 224, 224} : Shape{3, 28, 28};
      built(kj::str("network = \"", network.name, "\"\nconventions = \"", conventions.name, "\""),
          input);
    }
  }
}

TEST_CASE("Networks: lenet-bn equals its layers written out in a file") {
  checkEqual(named("lenet-bn", {1, 28, 28}), built(R"(
layers = [
  { kind = "conv", filters = 32, kernel = 3, stride = 2 },
  { kind = "batch_norm" },
  { kind = "relu" },
  { kind = "pool", function = "max", kernel = 2, rounding = "ceil" },
  { kind = "conv", filters = 32, kernel = 3, stride = 2 },
  { kind = "batch_norm" },
  { kind = "relu" },
  { kind = "pool", function = "max", kernel = 2, rounding = "ceil" },
  { kind = "dense", units = 10 },
]
)",
                                                 {1, 28, 28}));
}

// Convolution, batch norm and ReLU of inception.
kj::String factory(uint filters, uint kernel, uint stride, uint pad) {
  return kj::str("{ kind = \"conv\", filters = ", filters, ", kernel = ", kernel,
      ", stride = ", stride, ", pad = ", pad,
      " }, { kind = \"batch_norm\" }, { kind = \"relu\" }, ");
}

TEST_CASE("Networks: inception-bn begins with its layers written out in a file") {
  constexpr auto MAXIMUM =
      "{ kind = \"pool\", function = \"max\", kernel = 3, stride = 2, rounding = \"ceil\" }, "_kj;
  constexpr auto AVERAGE =
      "{ kind = \"pool\", function = \"average\", kernel = 3, stride = 1, pad = 1 }, "_kj;
  auto text = kj::str("layers = [ ", factory(64, 7, 2, 3), MAXIMUM, factory(64, 1, 1, 0),
      factory(192, 3, 1, 1), MAXIMUM,
      // 3a
      "{ kind = \"branches\", branches = [ [ ", factory(64, 1, 1, 0), "], [ ", factory(64, 1, 1, 0),
      factory(64, 3, 1, 1), "], [ ", factory(64, 1, 1, 0), factory(96, 3, 1, 1),
      factory(96, 3, 1, 1), "], [ ", AVERAGE, factory(32, 1, 1, 0), "] ] }, ",
      // 3b
      "{ kind = \"branches\", branches = [ [ ", factory(64, 1, 1, 0), "], [ ", factory(64, 1, 1, 0),
      factory(96, 3, 1, 1), "], [ ", factory(64, 1, 1, 0), factory(96, 3, 1, 1),
      factory(96, 3, 1, 1), "], [ ", AVERAGE, factory(64, 1, 1, 0), "] ] }, ",
      // 3c
      "{ kind = \"branches\", branches = [ [ ", factory(128, 1, 1, 0), factory(160, 3, 2, 1),
      "], [ ", factory(64, 1, 1, 0), factory(96, 3, 1, 1), factory(96, 3, 2, 1), "], [ ", MAXIMUM,
      "] ] }, ",
      // Any valid end: from here on, the network itself differs.
      "{ kind = \"pool\", function = \"average\", global = true }, { kind = \"dense\", units = 10 "
      "} ]");
  auto begin = built(text, {3, 224, 224});
  auto whole = named("inception-bn", {3, 224, 224});
  auto expected = textOf(begin);
  // All but the pool, the dense layer and the loss.
  size_t shared = 0;
  for (size_t i = 0; i + 3 < begin.nodes.size(); ++i) {
    while (expected[shared++] != '\n') {
    }
  }
  CHECK(begin.nodes[begin.nodes.size() - 4].shape == Shape{576, 14, 14});
  CHECK(kj::str(textOf(whole).slice(0, shared)) == kj::str(expected.slice(0, shared)));
}

TEST_CASE("Networks: resnet-56 equals its layers written out in a file with repeats") {
  checkEqual(named("resnet-56", {3, 28, 28}), built(R"(
[[layers]]
kind = "conv"
filters = 16
kernel = 3
pad = 1
[[layers]]
kind = "batch_norm"
[[layers]]
kind = "relu"

[[layers]]
kind = "repeat"
times = 9
layers = [
  { kind = "residual", layers = [
    { kind = "conv", filters = 16, kernel = 3, pad = 1 }, { kind = "batch_norm" }, { kind = "relu" },
    { kind = "conv", filters = 16, kernel = 3, pad = 1 }, { kind = "batch_norm" },
  ] },
  { kind = "relu" },
]

[[layers]]
kind = "residual"
layers = [
  { kind = "conv", filters = 32, kernel = 3, stride = 2, pad = 1 }, { kind = "batch_norm" },
  { kind = "relu" }, { kind = "conv", filters = 32, kernel = 3, pad = 1 }, { kind = "batch_norm" },
]
shortcut = [{ kind = "conv", filters = 32, kernel = 1, stride = 2 }, { kind = "batch_norm" }]
[[layers]]
kind = "relu"
[[layers]]
kind = "repeat"
times = 8
layers = [
  { kind = "residual", layers = [
    { kind = "conv", filters = 32, kernel = 3, pad = 1 }, { kind = "batch_norm" }, { kind = "relu" },
    { kind = "conv", filters = 32, kernel = 3, pad = 1 }, { kind = "batch_norm" },
  ] },
  { kind = "relu" },
]

[[layers]]
kind = "residual"
layers = [
  { kind = "conv", filters = 64, kernel = 3, stride = 2, pad = 1 }, { kind = "batch_norm" },
  { kind = "relu" }, { kind = "conv", filters = 64, kernel = 3, pad = 1 }, { kind = "batch_norm" },
]
shortcut = [{ kind = "conv", filters = 64, kernel = 1, stride = 2 }, { kind = "batch_norm" }]
[[layers]]
kind = "relu"
[[layers]]
kind = "repeat"
times = 8
layers = [
  { kind = "residual", layers = [
    { kind = "conv", filters = 64, kernel = 3, pad = 1 }, { kind = "batch_norm" }, { kind = "relu" },
    { kind = "conv", filters = 64, kernel = 3, pad = 1 }, { kind = "batch_norm" },
  ] },
  { kind = "relu" },
]

[[layers]]
kind = "pool"
function = "average"
kernel = 7
stride = 1
[[layers]]
kind = "dense"
units = 10
)",
                                                  {3, 28, 28}));
}

// A stage of the second version: BN and ReLU before a convolution.
kj::String stageV2(uint filters, uint stride, uint times) {
  constexpr auto NORM =
      "{ kind = \"batch_norm\", epsilon = 2e-5, momentum = 0.9, fixed_gamma = false }, "
      "{ kind = \"relu\" }, "_kj;
  auto conv = [&](uint kernel, uint stride) {
    return kj::str("{ kind = \"conv\", filters = ", filters, ", kernel = ", kernel,
        ", stride = ", stride, ", pad = ", kernel / 2, ", bias = false }, ");
  };
  return kj::str(NORM, "{ kind = \"residual\", layers = [ ", conv(3, stride), NORM, conv(3, 1),
      "], shortcut = [ ", conv(1, stride), "] }, { kind = \"repeat\", times = ", times - 1,
      ", layers = [ { kind = \"residual\", layers = [ ", NORM, conv(3, 1), NORM, conv(3, 1),
      "] } ] }, ");
}

TEST_CASE("Networks: resnet-20-v2 equals its layers written out in a file") {
  auto text = kj::str("layers = [ { kind = \"batch_norm\", epsilon = 2e-5, momentum = 0.9, ",
      "fixed_gamma = true }, { kind = \"conv\", filters = 16, kernel = 3, pad = 1, bias = false "
      "}, ",
      stageV2(16, 1, 3), stageV2(32, 2, 3), stageV2(64, 2, 3),
      "{ kind = \"batch_norm\", epsilon = 2e-5, momentum = 0.9, fixed_gamma = false }, "
      "{ kind = \"relu\" }, { kind = \"pool\", function = \"average\", global = true }, "
      "{ kind = \"dense\", units = 10 } ]");
  checkEqual(named("resnet-20-v2", {3, 28, 28}), built(text, {3, 28, 28}));
}

TEST_CASE("Networks: airbench94 equals its layers written out in a file, whatever [model] says") {
  auto group = [](uint filters) {
    auto conv = kj::str("{ kind = \"conv\", filters = ", filters,
        ", kernel = 3, pad = 1, bias = false, init = { kind = \"dirac\" } }, ");
    auto norm =
        "{ kind = \"batch_norm\", epsilon = 1e-12, momentum = 0.6, fixed_gamma = true }, "
        "{ kind = \"gelu\" }, "_kj;
    return kj::str(conv,
        "{ kind = \"pool\", function = \"max\", kernel = 2, rounding = \"floor\" }, ", norm, conv,
        norm);
  };
  auto text = kj::str("layers = [ { kind = \"conv\", filters = 24, kernel = 2, ",
      "init = { kind = \"whitening\" } }, { kind = \"gelu\" }, ", group(64), group(256), group(256),
      "{ kind = \"pool\", function = \"max\", kernel = 3, rounding = \"floor\" }, ",
      "{ kind = \"dense\", units = 10, bias = false, init = { kind = \"torch\" } }, ",
      "{ kind = \"scale\", factor = ", 1.0 / 9, " } ]");
  auto written = built(text, {3, 32, 32});
  checkEqual(named("airbench94", {3, 32, 32}), written);
  checkEqual(built("network = \"airbench94\"\nconventions = \"torch\"\ninit = { kind = \"he\" }",
                 {3, 32, 32}),
      written);
}

}  // namespace
}  // namespace nn

#include "nn/model.h"

#include <doctest/doctest.h>

#include <cstring>

namespace nn {
namespace {

// A [model] section's text, read and built for images of 3×8×8 in 10 classes.
struct Built {
  configs::Diagnostics diagnostics;
  kj::Own<configs::Document> document;
  ModelConfig config;
  Graph graph;

  explicit Built(kj::StringPtr text, Shape input = {3, 8, 8}) {
    document = configs::parse("x.toml", text, diagnostics);
    configs::Reading reading{diagnostics, {}};
    config = configs::readDocument(*document, reading, ModelConfig::read);
    graph = buildGraph(config, input, 10, diagnostics);
  }
  kj::String names() const {
    return kj::strArray(
        KJ_MAP(node, graph.nodes) { return kj::str(node.name); }, " ");
  }
  bool reports(kj::StringPtr text) const {
    return strstr(diagnostics.format("x.toml").cStr(), text.cStr()) != nullptr;
  }
};

TEST_CASE("Model: layers become nodes in the order of the file") {
  Built model(R"(
[[layers]]
kind = "conv"
name = "conv1"
filters = 4
kernel = 3

[[layers]]
kind = "relu"

[[layers]]
kind = "pool"
function = "max"
kernel = 2

[[layers]]
kind = "dense"
units = 10
bias = false
)");
  CHECK(model.diagnostics.format("x.toml") == "");
  CHECK(model.names() == "data conv1 activation0 pool0 dense0 loss");
  CHECK(model.graph.nodes[3].shape == Shape{4, 3, 3});
  CHECK(model.graph.parameters == 4 * 27 + 4 + 10 * 36);
  CHECK(model.graph.nodes[1].span.line == 2);
}

TEST_CASE("Model: what a layer leaves out comes from the conventions, its own keys win") {
  Built model(R"(
layers = [
  { kind = "batch_norm" },
  { kind = "batch_norm", epsilon = 1e-5, momentum = 0.99, fixed_gamma = true },
  { kind = "pool", function = "max", kernel = 3, stride = 2 },
  { kind = "pool", function = "average", kernel = 2, rounding = "floor" },
  { kind = "dense", units = 10 },
]
)");
  CHECK(model.diagnostics.count() == 0);
  auto& first = model.graph.nodes[1].op.get<BatchNorm>();
  CHECK(first.epsilon == 1e-3f);
  CHECK(first.momentum == 0.9f);
  CHECK(!first.fixedGamma);
  CHECK(first.movingVarianceStart == 1);
  auto& second = model.graph.nodes[2].op.get<BatchNorm>();
  CHECK(second.epsilon == 1e-5f);
  CHECK(second.momentum == 0.99f);
  CHECK(second.fixedGamma);
  // 8 → 4 by rounding up (3 otherwise), 4 → 2.
  CHECK(model.graph.nodes[3].shape == Shape{3, 4, 4});
  CHECK(model.graph.nodes[4].op.get<Pool>().rounding == Pool::FLOOR);
}

TEST_CASE("Model: composites unroll in the order written, copies of a named layer are numbered") {
  Built model(R"(
layers = [
  { kind = "branches", name = "both", branches = [
    [ { kind = "conv", name = "a", filters = 5, kernel = 1 } ],
    [],
  ] },
  { kind = "repeat", times = 2, layers = [
    { kind = "residual", layers = [
      { kind = "conv", name = "r", filters = 8, kernel = 3, pad = 1 },
      { kind = "relu" },
    ] },
  ] },
  { kind = "pool", function = "average", global = true },
  { kind = "dense", units = 10 },
]
)");
  CHECK(model.diagnostics.format("x.toml") == "");
  CHECK(model.names() == "data a both r_1 activation0 add0 r_2 activation1 add1 pool0 dense0 loss");
  CHECK(model.graph.nodes[2].shape == Shape{8, 8, 8});
  CHECK(model.graph.nodes[9].shape == Shape{8, 1, 1});
}

TEST_CASE("Model: a network by name has the classes of the data set") {
  Built model("network = \"mlp\"", {1, 28, 28});
  CHECK(model.diagnostics.count() == 0);
  CHECK(model.graph.classes == 10);
  CHECK(model.graph.parameters == 109386);
  CHECK(model.config.initializer.kind == Initializer::UNIFORM);
  CHECK(model.config.initializer.scale == 0.07);
}

TEST_CASE("Model: a last layer that does not give one value a class is reported at its line") {
  Built wrong("layers = [\n  { kind = \"dense\", units = 12 },\n]\n");
  CHECK(wrong.diagnostics.count() == 1);
  CHECK(wrong.reports(
      "x.toml:2:3: error: the last layer gives 12 values, but the data set has 10 classes"));
  Built wide("layers = [ { kind = \"conv\", filters = 10, kernel = 3 } ]");
  CHECK(wide.diagnostics.count() == 1);
  CHECK(wide.reports("the loss needs one number a class, but the last layer gives 10×6×6"));
}

TEST_CASE("Model: all misfits of a file are reported, each at its layer") {
  Built model(R"(layers = [
  { kind = "conv", filters = 4, kernel = 9 },
  { kind = "pool", function = "max", kernel = 11 },
  { kind = "dense", units = 10 },
]
)");
  CHECK(model.diagnostics.count() == 2);
  CHECK(
      model.reports("x.toml:2:3: error: layer `conv2d0`: kernel 9 does not fit in 8×8 with pad 0"));
  CHECK(
      model.reports("x.toml:3:3: error: layer `pool0`: kernel 11 does not fit in 8×8 with pad 0"));
}

TEST_CASE("Model: network and layers exclude each other, and one is needed") {
  CHECK(Built("conventions = \"mxnet\"").reports("a model needs `network` or `layers`"));
  CHECK(Built("network = \"mlp\"\nlayers = [ { kind = \"dense\", units = 10 } ]")
            .reports("`network` and `layers` cannot both be given"));
  CHECK(Built(
      "layers = [ { kind = \"pool\", function = \"max\" }, { kind = \"dense\", units = 10 } ]")
            .reports("a pool needs `kernel`"));
}

TEST_CASE("Model: the reference lists every kind of layer once, composites too") {
  auto text = configs::printReference("Model", [](configs::Reader& reader) {
    reader.section("model", "The network.", [](configs::Reader& r) {
      ModelConfig::read(r);
      return 0;
    });
    return 0;
  });
  for (auto word: {"`conv`", "`repeat`", "`shortcut`", "`xavier`", "`mxnet`", "`lenet`"}) {
    CHECK(strstr(text.cStr(), word) != nullptr);
  }
}

TEST_CASE("Model: repeats within repeats are refused before they are unrolled") {
  Built model(R"(
[[layers]]
kind = "repeat"
times = 1000
layers = [{ kind = "repeat", times = 1000, layers = [{ kind = "relu" }] }]
)");
  CHECK(model.reports("x.toml:4:9: error: `repeat` unrolls to 1000000 layers"));
}

}  // namespace
}  // namespace nn

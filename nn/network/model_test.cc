#include "nn/network/model.h"

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

TEST_CASE("Model: a layer's own keys take precedence over the conventions") {
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

TEST_CASE("Model: a last layer that does not give one value per class is reported at its line") {
  Built wrong("layers = [\n  { kind = \"dense\", units = 12 },\n]\n");
  CHECK(wrong.diagnostics.count() == 1);
  CHECK(wrong.reports(
      "x.toml:2:3: error: the last layer gives 12 values, but the data set has 10 classes"));
  Built wide("layers = [ { kind = \"conv\", filters = 10, kernel = 3 } ]");
  CHECK(wide.diagnostics.count() == 1);
  CHECK(wide.reports("the loss needs one number per class, but the last layer gives 10×6×6"));
}

TEST_CASE(
    "Model: misfits in branches are reported at their layers, but nothing that follows from them") {
  Built model(R"(layers = [
  { kind = "branches", branches = [
    [{ kind = "conv", filters = 4, kernel = 9 }, { kind = "conv", filters = 4, kernel = 10 }],
    [{ kind = "pool", function = "max", kernel = 11 }],
  ] },
  { kind = "conv", filters = 4, kernel = 12 },
]
)");
  CHECK(model.diagnostics.count() == 2);
  CHECK(
      model.reports("x.toml:3:6: error: layer `conv2d0`: kernel 9 does not fit in 8×8 with pad 0"));
  CHECK(
      model.reports("x.toml:4:6: error: layer `pool0`: kernel 11 does not fit in 8×8 with pad 0"));
}

TEST_CASE("Model: a network by name that images do not fit gives one error") {
  Built model("network = \"inception-bn\"", {3, 28, 28});
  CHECK(model.diagnostics.count() == 1);
  CHECK(model.reports("x.toml:1:11: error: network `inception-bn` does not fit images of 28×28: "));
}

TEST_CASE("Model: the message about a residual sum that does not fit names the kind of the layer") {
  Built model(R"(layers = [
  { kind = "residual", layers = [{ kind = "conv", filters = 3, kernel = 3 }] },
  { kind = "dense", units = 10 },
]
)");
  CHECK(model.reports("x.toml:2:3: error: layer `residual`: branches of 3×6×6 and 3×8×8"));
}

TEST_CASE("Model: branches without a list are refused with an example") {
  configs::Diagnostics diagnostics;
  auto document = configs::parse("x.toml", "layers = [{ kind = \"branches\" }]", diagnostics);
  configs::Reading reading{diagnostics, {}};
  configs::readDocument(*document, reading, ModelConfig::read);
  REQUIRE(diagnostics.count() == 1);
  CHECK(diagnostics.all()[0].message == "`branches` needs at least one list of layers");
  CHECK(diagnostics.all()[0].help.startsWith("write branches = [[{ kind = \"relu\" }], []]"));
}

TEST_CASE("Model: network and layers exclude each other, and one is needed") {
  CHECK(Built("conventions = \"mxnet\"").reports("a model needs `network` or `layers`"));
  CHECK(Built("network = \"mlp\"\nlayers = [ { kind = \"dense\", units = 10 } ]")
            .reports("`network` and `layers` cannot both be given"));
  CHECK(Built(
      "layers = [ { kind = \"pool\", function = \"max\" }, { kind = \"dense\", units = 10 } ]")
            .reports("a pool needs `kernel`"));
}

TEST_CASE("Model: a layer's `init` takes precedence over the model's, and dirac changes its base") {
  Built model(R"(
init = { kind = "he" }
layers = [
  { kind = "conv", filters = 24, kernel = 2, init = { kind = "whitening", images = 100 } },
  { kind = "conv", filters = 4, kernel = 3, init = { kind = "dirac", base = { kind = "normal", deviation = 0.5 } } },
  { kind = "dense", units = 10, init = { kind = "dirac" } },
  { kind = "dense", units = 10 },
]
)");
  CHECK(model.diagnostics.format("x.toml") == "");
  auto& keys = model.graph.keys;
  Initializer whitening{.kind = Initializer::WHITENING, .images = 100, .epsilon = 5e-4};
  Initializer normal{.kind = Initializer::NORMAL, .scale = 0.5, .identity = true};
  Initializer torch{.kind = Initializer::TORCH, .identity = true};
  CHECK(KJ_ASSERT_NONNULL(keys[0].initializer) == whitening);
  CHECK(KJ_ASSERT_NONNULL(keys[1].initializer) == whitening);
  CHECK(KJ_ASSERT_NONNULL(keys[2].initializer) == normal);
  CHECK(KJ_ASSERT_NONNULL(keys[4].initializer) == torch);
  CHECK(keys[6].initializer == nullptr);
}

TEST_CASE("Model: whitening is refused where its filters cannot be made") {
  auto refused = [](kj::StringPtr layers, kj::StringPtr sentence, Shape input = {3, 8, 8}) {
    Built model(kj::str("layers = [\n", layers, "\n  { kind = \"dense\", units = 10 },\n]"), input);
    CHECK(model.diagnostics.count() == 1);
    INFO(model.diagnostics.format("x.toml").cStr());
    CHECK(model.reports(kj::str("x.toml:2:3: error: layer `", sentence)));
  };
  auto conv = [](uint filters, kj::StringPtr more) {
    return kj::str("  { kind = \"conv\", filters = ", filters,
        ", init = { kind = \"whitening\" }, ", more, " },");
  };
  refused(
      conv(32, "kernel = 2"), "conv2d0`: `whitening` of patches of 3×2×2 gives 24 filters, not 32");
  refused("  { kind = \"dense\", units = 24, init = { kind = \"whitening\" } },",
      "dense0`: only a convolution of the images themselves can begin with `whitening`");
  refused(conv(2 * 3 * 81, "kernel = 9, pad = 1"), "conv2d0`: no patch of 9×9 lies in 8×8 images");
  refused(conv(2 * 3 * 400, "kernel = 20"),
      "conv2d0`: a patch of 3×20×20 has too many values for `whitening`: at most 1024",
      {3, 32, 32});
  refused(conv(24, "kernel = 2"),
      "conv2d0`: `whitening` needs 5000 images of 3×224×224, which do not fit in 1 GiB",
      {3, 224, 224});
  CHECK(Built("network = \"mlp\"\ninit = { kind = \"whitening\" }")
            .reports("x.toml:2:8: error: `whitening` cannot be the `init` of all layers"));
}

TEST_CASE("Model: the conventions decide how pools round, how batch norms begin, and what decays") {
  auto layers =
      "layers = [ { kind = \"batch_norm\" }, { kind = \"pool\", function = \"max\", kernel = 3, "
      "stride = 2 }, { kind = \"dense\", units = 10 } ]"_kj;
  Built torch(kj::str("conventions = \"torch\"\n", layers));
  auto& norm = torch.graph.nodes[1].op.get<BatchNorm>();
  CHECK(norm.epsilon == 1e-5f);
  CHECK(norm.momentum == 0.9f);
  CHECK(!norm.fixedGamma);
  CHECK(torch.graph.nodes[2].shape == Shape{3, 3, 3});
  for (auto& key: torch.graph.keys) CHECK(key.decayFactor == 1);

  Built mxnet(kj::str("conventions = \"mxnet_1x\"\n", layers));
  CHECK(mxnet.graph.nodes[1].op.get<BatchNorm>().fixedGamma);
  CHECK(mxnet.graph.nodes[2].shape == Shape{3, 3, 3});
  // In order: a held gamma, beta, weight, bias.
  float decays[] = {0, 0, 1, 0};
  REQUIRE(mxnet.graph.keys.size() == kj::size(decays));
  for (size_t i = 0; i < kj::size(decays); ++i) {
    CHECK(mxnet.graph.keys[i].decayFactor == decays[i]);
  }
}

TEST_CASE(
    "Model: fan out has the kernel's area, except with the conventions of MXNet's first year") {
  auto counts = [](kj::StringPtr conventions) {
    Built model(kj::str("network = \"mlp\"\nconventions = \"", conventions, "\""));
    return model.graph.fanOutHasKernelArea;
  };
  CHECK(!counts("mxnet"));
  CHECK(counts("mxnet_1x"));
  CHECK(counts("torch"));
}

TEST_CASE("Model: the reference lists every kind of layer once, composites too") {
  auto text = configs::printReference("Model", "", [](configs::Reader& reader) {
    reader.section("model", "The network.", [](configs::Reader& r) {
      ModelConfig::read(r);
      return 0;
    });
    return 0;
  });
  // Each kind has one heading, although layers of layers read the same table again.
  for (auto kind: {"conv", "dense", "batch_norm", "relu", "repeat"}) {
    auto heading = kj::str("#### `kind = \"", kind, "\"`");
    auto first = strstr(text.cStr(), heading.cStr());
    CHECK_MESSAGE(first != nullptr, kind);
    if (first != nullptr) CHECK_MESSAGE(strstr(first + 1, heading.cStr()) == nullptr, kind);
  }
}

TEST_CASE("Model: nested repeats that are too large are refused before they are unrolled") {
  Built model(R"(
[[layers]]
kind = "repeat"
times = 1000
layers = [{ kind = "repeat", times = 1000, layers = [{ kind = "relu" }] }]
)");
  CHECK(model.reports(
      "x.toml:4:9: error: `repeat` unrolls to 1000000 layers, and at most 100000 are allowed"));
}

TEST_CASE("Model: repeats that are too large together are refused before they are unrolled") {
  Built model(R"(
[[layers]]
kind = "repeat"
times = 1000
layers = [{ kind = "repeat", times = 60, layers = [{ kind = "relu" }] }]
[[layers]]
kind = "repeat"
times = 1000
layers = [{ kind = "repeat", times = 60, layers = [{ kind = "relu" }] }]
)");
  CHECK(model.reports("`layers` unroll to 120000 layers, and at most 100000 are allowed"));
}

TEST_CASE("Model: refuses a name of a repeat, which would have no effect") {
  Built model(R"(
[[layers]]
kind = "repeat"
name = "block"
times = 2
layers = [{ kind = "relu" }]
)");
  CHECK(model.reports("x.toml:4:8: error: a `repeat` has no use for a name"));
}

TEST_CASE("Model: reports only the innermost of nested repeats that is too large") {
  Built model(R"(
[[layers]]
kind = "repeat"
times = 1000
layers = [
  { kind = "repeat", times = 1000, layers = [
    { kind = "repeat", times = 1000, layers = [{ kind = "relu" }] },
  ] },
]
)");
  CHECK(model.reports("x.toml:6:30: error: `repeat` unrolls to 1000000 layers"));
  CHECK(!model.reports("x.toml:4:9: error"));
}

}  // namespace
}  // namespace nn

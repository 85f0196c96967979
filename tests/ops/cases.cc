#include "tests/ops/cases.h"

#include <kj/debug.h>

#include "configs/language/random.h"
#include "configs/language/reader.h"
#include "nn/network/initializer.h"
#include "nn/network/model.h"

namespace tests {
namespace {

constexpr Case ROWS[] = {
    {"conv 1×1", {3, 5, 7}, 4, 5, R"([
  { kind = "conv", filters = 10, kernel = 1 },
  { kind = "conv", filters = 17, kernel = 1 },
  { kind = "dense", units = 4 },
])"},
    {"conv 3×3 with padding, odd channels", {3, 9, 7}, 4, 3, R"([
  { kind = "conv", filters = 10, kernel = 3, pad = 1 },
  { kind = "conv", filters = 17, kernel = 3, pad = 1 },
  { kind = "dense", units = 4 },
])"},
    {"conv 3×3 with padding, channels of whole vectors", {16, 14, 14}, 4, 3, R"([
  { kind = "conv", filters = 32, kernel = 3, pad = 1 },
  { kind = "conv", filters = 48, kernel = 3, pad = 1 },
  { kind = "dense", units = 4 },
])"},
    {"conv of few filters", {1, 12, 12}, 4, 3, R"([
  { kind = "conv", filters = 8, kernel = 3, stride = 2, pad = 1 },
  { kind = "conv", filters = 4, kernel = 3, pad = 1 },
  { kind = "conv", filters = 12, kernel = 1 },
  { kind = "conv", filters = 1, kernel = 3 },
  { kind = "dense", units = 4 },
])"},
    {"conv 5×5 and 7×7 of channels just above whole vectors", {3, 9, 11}, 4, 3, R"([
  { kind = "conv", filters = 17, kernel = 1 },
  { kind = "conv", filters = 20, kernel = 5, pad = 1 },
  { kind = "conv", filters = 33, kernel = 7, stride = 2, pad = 3 },
  { kind = "dense", units = 4 },
])"},
    {"conv with a kernel larger than the image", {3, 2, 3}, 4, 3, R"([
  { kind = "conv", filters = 10, kernel = 7, pad = 3 },
  { kind = "conv", filters = 5, kernel = 7, pad = 3, bias = false },
  { kind = "dense", units = 4 },
])"},
    {"conv 11×11 stride 4 of images", {3, 23, 27}, 4, 3, R"([
  { kind = "conv", filters = 17, kernel = 11, stride = 4, pad = 2 },
  { kind = "dense", units = 4 },
])"},
    {"conv 7×7 stride 2 of images", {3, 15, 18}, 4, 3, R"([
  { kind = "conv", filters = 10, kernel = 7, stride = 2, pad = 3, bias = false },
  { kind = "dense", units = 4 },
])"},
    {"conv 5×5 without padding", {3, 11, 12}, 4, 3, R"([
  { kind = "conv", filters = 10, kernel = 5 },
  { kind = "conv", filters = 3, kernel = 5 },
  { kind = "dense", units = 4 },
])"},
    {"conv 3×3 stride 2 on odd sides", {3, 9, 7}, 4, 4, R"([
  { kind = "conv", filters = 17, kernel = 3, stride = 2, pad = 1 },
  { kind = "conv", filters = 10, kernel = 3, stride = 2, pad = 1 },
  { kind = "dense", units = 4 },
])"},
    {"conv 1×1 stride 2", {16, 8, 7}, 4, 4, R"([
  { kind = "conv", filters = 16, kernel = 3, pad = 1 },
  { kind = "conv", filters = 32, kernel = 1, stride = 2 },
  { kind = "dense", units = 4 },
])"},
    {"conv whose windows leave pixels out", {3, 10, 9}, 4, 2, R"([
  { kind = "conv", filters = 10, kernel = 3, stride = 3 },
  { kind = "conv", filters = 3, kernel = 2, stride = 2 },
  { kind = "dense", units = 4 },
])"},
    {"conv without bias", {3, 6, 6}, 4, 3, R"([
  { kind = "conv", filters = 10, kernel = 3, bias = false },
  { kind = "conv", filters = 16, kernel = 3, bias = false },
  { kind = "dense", units = 4, bias = false },
])"},
    {"conv on a batch of one", {3, 6, 6}, 4, 1, R"([
  { kind = "conv", filters = 10, kernel = 3, pad = 1 },
  { kind = "dense", units = 4 },
])"},
    {"dense on pixels, then on a vector", {3, 5, 7}, 10, 6, R"([
  { kind = "dense", units = 17 },
  { kind = "dense", units = 10 },
])"},
    {"dense after a blocked convolution", {16, 3, 5}, 4, 3, R"([
  { kind = "conv", filters = 32, kernel = 3, pad = 1 },
  { kind = "dense", units = 33, bias = false },
  { kind = "dense", units = 4 },
])"},
    {"relu", {3, 6, 6}, 4, 5, R"([
  { kind = "conv", filters = 17, kernel = 3, pad = 1 },
  { kind = "relu" },
  { kind = "dense", units = 4 },
])"},
    {"relu on the images", {3, 6, 6}, 4, 5, R"([
  { kind = "relu" },
  { kind = "dense", units = 4 },
])"},
    {"tanh", {3, 6, 6}, 4, 5, R"([
  { kind = "conv", filters = 10, kernel = 3, pad = 1 },
  { kind = "tanh" },
  { kind = "dense", units = 17 },
  { kind = "tanh" },
  { kind = "dense", units = 4 },
])"},
    {"sigmoid, and channels that do not fill their block after it", {3, 6, 6}, 4, 5, R"([
  { kind = "conv", filters = 10, kernel = 3, pad = 1 },
  { kind = "sigmoid" },
  { kind = "conv", filters = 7, kernel = 3, pad = 1 },
  { kind = "batch_norm" },
  { kind = "sigmoid" },
  { kind = "dense", units = 17 },
  { kind = "sigmoid" },
  { kind = "dense", units = 4 },
])"},
    {"elu", {3, 6, 6}, 4, 5, R"([
  { kind = "conv", filters = 10, kernel = 3, pad = 1 },
  { kind = "elu" },
  { kind = "pool", function = "average", kernel = 3, stride = 2 },
  { kind = "elu" },
  { kind = "dense", units = 17 },
  { kind = "activation", function = "elu" },
  { kind = "dense", units = 4 },
])"},
    {"sigmoid and elu on the images", {3, 6, 6}, 4, 5, R"([
  { kind = "branches", branches = [ [ { kind = "sigmoid" } ], [ { kind = "elu" } ] ] },
  { kind = "conv", filters = 5, kernel = 3 },
  { kind = "dense", units = 4 },
])"},
    {"gelu after convolution, dense, concat and pool", {3, 6, 6}, 4, 5, R"([
  { kind = "conv", filters = 10, kernel = 2 },
  { kind = "gelu" },
  { kind = "branches", branches = [
    [ { kind = "conv", filters = 3, kernel = 1 }, { kind = "gelu" } ],
    [ { kind = "gelu" }, { kind = "gelu" } ],
    [],
  ] },
  { kind = "gelu" },
  { kind = "pool", function = "average", kernel = 3, stride = 2 },
  { kind = "gelu" },
  { kind = "dense", units = 17 },
  { kind = "activation", function = "gelu" },
  { kind = "dense", units = 4 },
])"},
    {"gelu after batch norm and on the images", {3, 6, 6}, 4, 5, R"([
  { kind = "gelu" },
  { kind = "conv", filters = 17, kernel = 3, pad = 1 },
  { kind = "batch_norm" },
  { kind = "gelu" },
  { kind = "residual", layers = [
    { kind = "conv", filters = 17, kernel = 3, pad = 1, bias = false },
    { kind = "batch_norm" },
    { kind = "gelu" },
  ] },
  { kind = "batch_norm" },
  { kind = "residual", layers = [ { kind = "gelu" } ] },
  { kind = "dense", units = 4 },
])"},
    {"scale of values and logits", {3, 6, 6}, 4, 5, R"([
  { kind = "conv", filters = 10, kernel = 3, pad = 1 },
  { kind = "scale", factor = -0.5 },
  { kind = "residual", layers = [ { kind = "scale", factor = 3 } ] },
  { kind = "dense", units = 4 },
  { kind = "scale", factor = 0.11 },
])"},
    {.name = "smoothed labels",
        .input = {3, 6, 6},
        .classes = 10,
        .batchSize = 5,
        .layers = R"([
  { kind = "conv", filters = 10, kernel = 3, pad = 1 },
  { kind = "dense", units = 10 },
])",
        .labelSmoothing = 0.2f},
    {"dropout after layers of all kinds", {3, 6, 6}, 4, 5, R"([
  { kind = "conv", filters = 10, kernel = 3, pad = 1 },
  { kind = "elu" },
  { kind = "dropout", rate = 0.3 },
  { kind = "conv", filters = 17, kernel = 3, pad = 1 },
  { kind = "batch_norm" },
  { kind = "dropout", rate = 0.5 },
  { kind = "relu" },
  { kind = "pool", function = "max", kernel = 2 },
  { kind = "dropout", rate = 0.25 },
  { kind = "dropout", rate = 0.25 },
  { kind = "dense", units = 33 },
  { kind = "dropout", rate = 0 },
  { kind = "tanh" },
  { kind = "dropout", rate = 0.5 },
  { kind = "dense", units = 4 },
])"},
    {"dropout on the images, and of the logits", {3, 5, 7}, 10, 6, R"([
  { kind = "dropout", rate = 0.2 },
  { kind = "dense", units = 17 },
  { kind = "elu" },
  { kind = "dense", units = 10 },
  { kind = "dropout", rate = 0.2 },
])"},
    {"dropout on the images, before layers that want them in blocks and plain", {3, 6, 6}, 4, 5,
        R"([
  { kind = "dropout", rate = 0.2 },
  { kind = "branches", branches = [
    [ { kind = "conv", filters = 16, kernel = 3, pad = 1 } ],
    [ { kind = "elu" }, { kind = "dropout", rate = 0.2 } ],
    [],
  ] },
  { kind = "conv", filters = 5, kernel = 3 },
  { kind = "dense", units = 4 },
])"},
    {"dropout in branches over one input", {3, 6, 6}, 4, 5, R"([
  { kind = "conv", filters = 10, kernel = 3, pad = 1 },
  { kind = "branches", branches = [
    [ { kind = "dropout", rate = 0.5 } ],
    [ { kind = "conv", filters = 17, kernel = 1 }, { kind = "dropout", rate = 0.2 } ],
    [],
  ] },
  { kind = "residual", layers = [ { kind = "dropout", rate = 0.5 } ] },
  { kind = "dense", units = 4 },
])"},
    {"batch norm, odd channels", {3, 5, 7}, 4, 5, R"([
  { kind = "conv", filters = 10, kernel = 3, pad = 1 },
  { kind = "batch_norm" },
  { kind = "conv", filters = 3, kernel = 1, bias = false },
  { kind = "batch_norm", epsilon = 1e-5, momentum = 0.5 },
  { kind = "dense", units = 4 },
])"},
    {"batch norm and relu, channels of whole vectors", {3, 8, 8}, 4, 5, R"([
  { kind = "conv", filters = 16, kernel = 3, pad = 1 },
  { kind = "batch_norm" },
  { kind = "relu" },
  { kind = "conv", filters = 32, kernel = 3, pad = 1 },
  { kind = "batch_norm" },
  { kind = "relu" },
  { kind = "dense", units = 4 },
])"},
    {"batch norm of a vector", {3, 4, 4}, 4, 9, R"([
  { kind = "dense", units = 17 },
  { kind = "batch_norm" },
  { kind = "tanh" },
  { kind = "dense", units = 4 },
])"},
    {"batch norm on the images, its gamma held", {3, 6, 6}, 4, 4, R"([
  { kind = "batch_norm", fixed_gamma = true },
  { kind = "conv", filters = 10, kernel = 3 },
  { kind = "relu" },
  { kind = "batch_norm", fixed_gamma = true },
  { kind = "dense", units = 4 },
])"},
    {"max pool 2×2", {3, 8, 6}, 4, 3, R"([
  { kind = "conv", filters = 17, kernel = 3, pad = 1 },
  { kind = "pool", function = "max", kernel = 2 },
  { kind = "dense", units = 4 },
])"},
    {"max pool 3×3 stride 2 that hangs over the edge", {3, 8, 6}, 4, 3, R"([
  { kind = "conv", filters = 16, kernel = 3, pad = 1 },
  { kind = "pool", function = "max", kernel = 3, stride = 2 },
  { kind = "dense", units = 4 },
])"},
    {"max pool 3×3 stride 2, whole windows only", {3, 8, 6}, 4, 3, R"([
  { kind = "conv", filters = 10, kernel = 3, pad = 1 },
  { kind = "pool", function = "max", kernel = 3, stride = 2, rounding = "floor" },
  { kind = "dense", units = 4 },
])"},
    {"max pool with padding, stride 1", {3, 7, 5}, 4, 3, R"([
  { kind = "conv", filters = 10, kernel = 3, pad = 1 },
  { kind = "tanh" },
  { kind = "pool", function = "max", kernel = 3, stride = 1, pad = 1 },
  { kind = "dense", units = 4 },
])"},
    {"average pool 3×3 stride 2 that hangs over the edge", {3, 8, 6}, 4, 3, R"([
  { kind = "conv", filters = 17, kernel = 3, pad = 1 },
  { kind = "pool", function = "average", kernel = 3, stride = 2 },
  { kind = "dense", units = 4 },
])"},
    {"average pool with padding, stride 1", {3, 7, 5}, 4, 3, R"([
  { kind = "conv", filters = 16, kernel = 3, pad = 1 },
  { kind = "pool", function = "average", kernel = 3, stride = 1, pad = 1 },
  { kind = "dense", units = 4 },
])"},
    {"average pool over all", {3, 7, 7}, 4, 3, R"([
  { kind = "conv", filters = 10, kernel = 3, pad = 1 },
  { kind = "batch_norm" },
  { kind = "relu" },
  { kind = "pool", function = "average", global = true },
  { kind = "dense", units = 4 },
])"},
    {"pool on the images", {3, 7, 7}, 4, 3, R"([
  { kind = "pool", function = "max", kernel = 2 },
  { kind = "conv", filters = 10, kernel = 3, pad = 1 },
  { kind = "dense", units = 4 },
])"},
    {"concat of odd channels", {3, 6, 6}, 4, 3, R"([
  { kind = "conv", filters = 10, kernel = 3, pad = 1 },
  { kind = "branches", branches = [
    [ { kind = "conv", filters = 3, kernel = 1 } ],
    [ { kind = "conv", filters = 10, kernel = 3, pad = 1 }, { kind = "relu" } ],
    [ { kind = "conv", filters = 17, kernel = 5, pad = 2 }, { kind = "tanh" } ],
  ] },
  { kind = "dense", units = 4 },
])"},
    {"concat with its own input, twice", {3, 6, 6}, 4, 3, R"([
  { kind = "conv", filters = 10, kernel = 3, pad = 1 },
  { kind = "branches", branches = [
    [],
    [ { kind = "conv", filters = 3, kernel = 1 } ],
    [],
  ] },
  { kind = "dense", units = 4 },
])"},
    {"concat of the images", {3, 6, 6}, 4, 3, R"([
  { kind = "branches", branches = [
    [],
    [ { kind = "conv", filters = 5, kernel = 3, pad = 1 } ],
  ] },
  { kind = "dense", units = 4 },
])"},
    {"add with the input itself, then relu", {3, 6, 6}, 4, 3, R"([
  { kind = "conv", filters = 17, kernel = 3, pad = 1 },
  { kind = "residual", layers = [
    { kind = "conv", filters = 17, kernel = 3, pad = 1 },
    { kind = "batch_norm" },
  ] },
  { kind = "relu" },
  { kind = "dense", units = 4 },
])"},
    {"add of three branches, one of them the input", {3, 6, 6}, 4, 3, R"([
  { kind = "conv", filters = 16, kernel = 3, pad = 1 },
  { kind = "branches", join = "add", branches = [
    [ { kind = "conv", filters = 16, kernel = 1 } ],
    [],
    [ { kind = "conv", filters = 16, kernel = 3, pad = 1 }, { kind = "tanh" } ],
  ] },
  { kind = "dense", units = 4 },
])"},
    {"add of three branches, all of them the input", {3, 6, 6}, 4, 3, R"([
  { kind = "conv", filters = 16, kernel = 3, pad = 1 },
  { kind = "branches", join = "add", branches = [[], [], []] },
  { kind = "dense", units = 4 },
])"},
    {"a small lenet", {1, 16, 16}, 10, 4, R"([
  { kind = "conv", filters = 20, kernel = 5 },
  { kind = "tanh" },
  { kind = "pool", function = "max", kernel = 2 },
  { kind = "conv", filters = 5, kernel = 3 },
  { kind = "tanh" },
  { kind = "pool", function = "max", kernel = 2 },
  { kind = "dense", units = 50 },
  { kind = "tanh" },
  { kind = "dense", units = 10 },
])"},
    {"a small inception, channels of whole vectors", {3, 12, 12}, 10, 5, R"([
  { kind = "conv", filters = 16, kernel = 3, pad = 1 },
  { kind = "batch_norm" },
  { kind = "relu" },
  { kind = "branches", branches = [
    [ { kind = "conv", filters = 16, kernel = 1 }, { kind = "batch_norm" }, { kind = "relu" } ],
    [
      { kind = "conv", filters = 32, kernel = 3, pad = 1 },
      { kind = "batch_norm" },
      { kind = "relu" },
    ],
  ] },
  { kind = "branches", branches = [
    [
      { kind = "conv", filters = 32, kernel = 3, stride = 2, pad = 1 },
      { kind = "batch_norm" },
      { kind = "relu" },
    ],
    [ { kind = "pool", function = "max", kernel = 3, stride = 2 } ],
  ] },
  { kind = "pool", function = "average", kernel = 6, stride = 1 },
  { kind = "dense", units = 10 },
])"},
    {"a small inception, odd channels and sides", {3, 9, 9}, 10, 5, R"([
  { kind = "conv", filters = 10, kernel = 3, pad = 1 },
  { kind = "batch_norm" },
  { kind = "relu" },
  { kind = "branches", branches = [
    [ { kind = "conv", filters = 3, kernel = 1 }, { kind = "batch_norm" }, { kind = "relu" } ],
    [
      { kind = "conv", filters = 17, kernel = 3, pad = 1 },
      { kind = "batch_norm" },
      { kind = "relu" },
    ],
  ] },
  { kind = "branches", branches = [
    [
      { kind = "conv", filters = 10, kernel = 3, stride = 2, pad = 1 },
      { kind = "batch_norm" },
      { kind = "relu" },
    ],
    [ { kind = "pool", function = "max", kernel = 3, stride = 2, pad = 1, rounding = "floor" } ],
  ] },
  { kind = "pool", function = "average", kernel = 5, stride = 1 },
  { kind = "dense", units = 10 },
])"},
    {"a small residual net", {3, 8, 8}, 10, 5, R"([
  { kind = "conv", filters = 16, kernel = 3, pad = 1 },
  { kind = "batch_norm" },
  { kind = "relu" },
  { kind = "repeat", times = 2, layers = [
    { kind = "residual", layers = [
      { kind = "conv", filters = 16, kernel = 3, pad = 1 },
      { kind = "batch_norm" },
      { kind = "relu" },
      { kind = "conv", filters = 16, kernel = 3, pad = 1 },
      { kind = "batch_norm" },
    ] },
    { kind = "relu" },
  ] },
  { kind = "residual", layers = [
    { kind = "conv", filters = 32, kernel = 3, stride = 2, pad = 1 },
    { kind = "batch_norm" },
  ], shortcut = [ { kind = "conv", filters = 32, kernel = 1, stride = 2 } ] },
  { kind = "relu" },
  { kind = "pool", function = "average", global = true },
  { kind = "dense", units = 10 },
])"},
};

}  // namespace

constinit const kj::ArrayPtr<const Case> CASES = ROWS;

CaseGraph build(const Case& c) {
  configs::Diagnostics diagnostics;
  CaseGraph result;
  result.document = configs::parse(c.name, kj::str("layers = ", c.layers), diagnostics);
  configs::Reading reading{diagnostics, {}};
  auto config = configs::readDocument(*result.document, reading, nn::ModelConfig::read);
  result.graph =
      nn::buildGraph(config, c.input, c.classes, diagnostics, {.smoothing = c.labelSmoothing});
  KJ_REQUIRE(diagnostics.count() == 0, diagnostics.format(c.name));
  return result;
}

CaseBatch draw(const Case& c, uint64_t seed) {
  configs::Random random(seed, configs::Purpose::ORDER);
  CaseBatch batch{kj::heapArray<float>(c.batchSize * c.input.size()),
      kj::heapArray<int32_t>(c.batchSize), kj::heapArray<uint64_t>(c.batchSize)};
  for (float& pixel: batch.pixels) pixel = float(random.normal());
  for (uint n = 0; n < c.batchSize; ++n) {
    batch.labels[n] = c.batchSize > 2 && n % 3 == 1 ? -1 : int32_t(random.below(c.classes));
  }
  for (auto& number: batch.draws) number = random.next();
  return batch;
}

void fill(const nn::Graph& graph, nn::Program& program) {
  nn::initialize(
      graph, {.kind = nn::Initializer::XAVIER}, 1, program.parameters(), program.statistics());
  configs::Random random(2, configs::Purpose::INITIAL_VALUES);
  for (auto& key: graph.keys) {
    if (key.role == nn::Key::WEIGHT) continue;
    for (float& value: program.parameters().slice(key.offset, key.offset + key.size)) {
      value += float(0.2 * random.normal());
    }
  }
}

nn::BatchResult step(const nn::Graph& graph, nn::Program& program, nn::Phase phase) {
  uint segments = graph.segments.size();
  for (uint s = 0; s < segments; ++s) program.forward(phase, s);
  if (phase == nn::Phase::TRAIN) nn::backwardAll(program, segments, [](uint) {});
  return program.result();
}

}  // namespace tests

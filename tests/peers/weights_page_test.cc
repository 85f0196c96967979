// The programs in docs/formats/weights.md read our weights in PyTorch, JAX and NumPy.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <string.h>

#include "nn/network/networks.h"
#include "runner/checkpoints/weights.h"
#include "tests/command.h"
#include "tests/peers/python.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr uint SECONDS = 250;
constexpr int NOT_HERE = 77;
constexpr uint LINES_MAX = 10;

// Begins each program: ends it with NOT_HERE if one of the packages is missing.
kj::String imports(kj::StringPtr packages) {
  return kj::str("try:\n    import safetensors, ", packages,
      "\nexcept ImportError:\n    raise SystemExit(", NOT_HERE, ")\n");
}

// Returns the block of Python on the page that contains `part`.
kj::String blockWith(kj::StringPtr part) {
  constexpr auto BEGIN = "```python\n"_kj, END = "```\n"_kj;
  auto page = readFile("docs/formats/weights.md");
  const char* at = page.cStr();
  while ((at = ::strstr(at, BEGIN.cStr())) != nullptr) {
    at += BEGIN.size();
    auto end = ::strstr(at, END.cStr());
    REQUIRE(end != nullptr);
    auto block = kj::heapString(at, end - at);
    if (contains(block, part)) return block;
    at = end;
  }
  KJ_FAIL_REQUIRE("the page has no such block", part);
}

// Writes weights of a small network to weights.safetensors of `folder`: those of lenet-bn, value i
// of the file is i / 1000.
void write(kj::StringPtr folder) {
  configs::Diagnostics diagnostics;
  nn::GraphBuilder builder({1, 28, 28}, diagnostics);
  nn::NodeId last = 0;
  for (auto& row: nn::NETWORKS) {
    if (row.name == "lenet-bn"_kj) {
      last = nn::addLayers(builder, row.layers(10, {}), 0, nn::CONVENTIONS[0]);
    }
  }
  auto graph = builder.finish(last, {});
  auto parameters = kj::heapArray<float>(graph.parameters);
  auto statistics = kj::heapArray<float>(graph.statisticsSize);
  float next = 0;
  for (auto& x: parameters) x = next++ / 1000;
  for (auto& x: statistics) x = next++ / 1000;
  auto path = kj::str(folder, "/weights.safetensors");
  runner::writeWeights(path, graph, "digest", parameters, statistics);
}

Ended run(kj::StringPtr folder, kj::StringPtr program) {
  kj::StringPtr words[] = {python(), "-c"_kj, program};
  return Command(words, {.folder = folder}).wait(SECONDS);
}

// A case's body: a macro, since SKIP_CASE leaves the case itself. Runs the block of the page with
// `before` in front of it and `after` behind it.
#define CHECK_BLOCK(part, packages, before, after)                                           \
  do {                                                                                       \
    auto folder = newFolder();                                                               \
    write(folder);                                                                           \
    auto block = blockWith(part);                                                            \
    CHECK(countOf(block, "\n") <= LINES_MAX);                                                \
    auto ended = run(folder, kj::str(imports(packages), before, block, after));              \
    if (ended.exitCode == NOT_HERE) {                                                        \
      SKIP_CASE("no Python with safetensors and " packages " (RUNNER_PYTHON can name one)"); \
    }                                                                                        \
    INFO(ended.errors);                                                                      \
    CHECK(ended.exitCode == 0);                                                              \
  } while (false)

TEST_CASE("Weights: PyTorch reads them with the program on the page") {
  CHECK_BLOCK("load_state_dict", "torch", R"(
from torch import nn
model = nn.Module()
for number in (1, 2):
    model.add_module(f"conv{number}", nn.Conv2d(1 if number == 1 else 32, 32, 3))
    model.add_module(f"conv{number}_bn", nn.BatchNorm2d(32))
model.fc = nn.Linear(128, 10)
)",
      R"(
assert abs(model.conv1.weight[31, 0, 2, 2] - .287) < 1e-6
assert abs(model.conv1.bias[0] - .288) < 1e-6
assert abs(model.conv1_bn.weight[0] - .32) < 1e-6
assert abs(model.conv1_bn.bias[0] - .352) < 1e-6
assert abs(model.fc.bias[9] - 10.985) < 1e-6
assert abs(model.conv1_bn.running_mean[0] - 10.986) < 1e-5
assert abs(model.conv2_bn.running_var[31] - 11.113) < 1e-5
)");
}

TEST_CASE("Weights: JAX reads them and convolves with the program on the page") {
  CHECK_BLOCK("jax.lax", "jax", R"(
import numpy
images = numpy.arange(2 * 5 * 5, dtype="float32").reshape(2, 1, 5, 5)
)",
      R"(
assert outputs.shape == (2, 32, 3, 3)
filter = numpy.arange(9 * 31, 9 * 32).reshape(3, 3) / 1000
expected = (images[1, 0, 2:5, 1:4] * filter).sum() + .319
assert abs(outputs[1, 31, 2, 1] - expected) < 1e-3, (outputs[1, 31, 2, 1], expected)
)");
}

TEST_CASE("Weights: NumPy reads them with the program on the page") {
  CHECK_BLOCK("frombuffer", "numpy", "", R"(
from safetensors.numpy import load_file
package = load_file("weights.safetensors")
assert weights.keys() == package.keys() and len(weights) == 14
for name, array in package.items():
    assert weights[name].shape == array.shape and (weights[name] == array).all(), name
)");
}

}  // namespace
}  // namespace tests

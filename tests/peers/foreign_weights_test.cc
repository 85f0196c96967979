// Our networks with the weights of PyTorch and MXNet compute what theirs compute.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <string.h>

#include <cmath>

#include "nn/cpu/cpu.h"
#include "nn/network/networks.h"
#include "runner/weights/load_weights.h"
#include "tests/command.h"
#include "tests/peers/python.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr char NO_TORCH[] = "no Python with PyTorch (RUNNER_PYTHON can name one)";
constexpr char NO_MXNET[] =
    "no Python with MXNet 1.9, or no dataset-fashion-mnist (RUNNER_PYTHON can name a Python)";
constexpr int NOT_HERE = 77;
// The time-out of programs that load PyTorch while other tests run. An epoch of MXNet on two cores
// takes a minute.
constexpr uint SECONDS = 800;
// Relative to the largest logit, or to 1.
constexpr double TOLERANCE = 1e-4;

struct Network {
  kj::StringPtr name;
  nn::Shape images;
  uint classes = 10;
};

nn::Graph graphOf(const Network& network, kj::StringPtr conventions) {
  configs::Diagnostics diagnostics;
  nn::GraphBuilder builder(network.images, diagnostics);
  nn::NodeId last = 0;
  for (auto& row: nn::NETWORKS) {
    if (row.name != network.name) continue;
    for (auto& each: nn::CONVENTIONS) {
      if (each.name != conventions) continue;
      last = nn::addLayers(builder, row.layers(network.classes, {}), 0, each);
    }
  }
  auto graph = builder.finish(last, {});
  REQUIRE(diagnostics.count() == 0);
  REQUIRE(graph.parameters > 0);
  return graph;
}

// Returns the numbers of a file that a script has written.
template <typename T>
kj::Array<T> numbersIn(kj::StringPtr path) {
  auto text = readFile(path);
  auto numbers = kj::heapArray<T>(text.size() / sizeof(T));
  memcpy(numbers.begin(), text.begin(), numbers.asBytes().size());
  return numbers;
}

double largest(kj::ArrayPtr<const float> values) {
  double most = 0;
  for (float value: values) most = std::fmax(most, std::fabs(value));
  return most;
}

// How many images have their label as the largest logit.
struct Correct {
  uint64_t ours = 0, theirs = 0;
};

// Loads `file` of `folder`, and compares the logits of the images there. `skip` names arrays that
// the file lacks. They are 0. Without labels.i32, all labels are 0.
Correct compare(const nn::Graph& graph, kj::StringPtr folder, kj::StringPtr file,
    kj::ArrayPtr<const kj::String> skip = nullptr, bool hasLabels = false) {
  auto theirs = numbersIn<float>(kj::str(folder, "/logits.f32"));
  auto pixels = numbersIn<float>(kj::str(folder, "/pixels.f32"));
  uint images = theirs.size() / graph.classes;
  REQUIRE(pixels.size() == images * graph.inputShape().size());
  auto program = nn::CPU.lower(graph, {.batchSize = images, .threads = 2});
  for (float& value: program->parameters()) value = 0;

  auto weights = runner::openWeights(kj::str(folder, "/", file));
  auto report =
      runner::loadWeights(weights, graph, skip, program->parameters(), program->statistics());
  INFO(report.text());
  CHECK(report.whyIncomplete() == nullptr);
  CHECK(report.unused.size() == 0);

  auto labels = kj::heapArray<int32_t>(images);
  for (auto& label: labels) label = 0;
  if (hasLabels) labels = numbersIn<int32_t>(kj::str(folder, "/labels.i32"));
  program->setBatch(pixels, labels, nullptr);
  for (auto s: kj::indices(graph.segments)) program->forward(nn::Phase::VALIDATE, s);
  auto ours = program->logits();
  REQUIRE(ours.size() == theirs.size());
  double difference = 0, scale = std::fmax(1, largest(theirs));
  for (auto i: kj::indices(theirs)) {
    difference = std::fmax(difference, std::fabs(double(ours[i]) - theirs[i]));
  }
  MESSAGE(file, ": largest difference ", difference, ", largest logit ", largest(theirs));
  CHECK(difference <= TOLERANCE * scale);

  Correct correct{.ours = program->result().correct};
  for (uint i = 0; i < images; i++) {
    auto row = theirs.slice(i * graph.classes, (i + 1) * graph.classes);
    uint best = 0;
    for (uint c = 1; c < graph.classes; c++) best = row[c] > row[best] ? c : best;
    correct.theirs += int32_t(best) == labels[i];
  }
  return correct;
}

// A case's body: a macro, since SKIP_CASE leaves the case itself.
#define RUN_SCRIPT(words, reason)                      \
  do {                                                 \
    auto ended = Command(words).wait(SECONDS);         \
    if (ended.exitCode == NOT_HERE) SKIP_CASE(reason); \
    INFO(ended.errors);                                \
    REQUIRE(ended.exitCode == 0);                      \
  } while (false)

TEST_CASE("PyTorch's weights give PyTorch's logits, in every network and every type of numbers") {
  struct Case {
    Network network;
    kj::StringPtr type = "F32"_kj;
    bool hasBiases = true;
    kj::StringPtr images = "16"_kj;
  };
  const Case CASES[] = {
      {{"mlp", {1, 28, 28}}, "F64"},
      {{"lenet", {1, 28, 28}}, "BF16"},
      {{"lenet-bn", {1, 28, 28}}},
      {{"inception-bn-28-small", {3, 28, 28}}},
      {{"inception-bn", {3, 224, 224}, 1000}, "F32", true, "4"},
      {{"airbench94", {3, 32, 32}}, "F16"},
      {{"resnet-18", {3, 224, 224}, 1000}, "F32", true, "2"},
      {{"resnet-34", {3, 64, 64}, 1000}, "F32", true, "4"},
      {{"resnet-50", {3, 224, 224}, 1000}, "F32", true, "2"},
      {{"resnet-20", {3, 28, 28}}, "F32", false},
      {{"resnet-32", {3, 28, 28}}},
      {{"resnet-56", {3, 28, 28}}, "F32", false},
      {{"resnet-110", {3, 28, 28}}},
      {{"resnet-20-v2", {3, 28, 28}}},
      {{"resnet-32-v2", {3, 28, 28}}},
      {{"resnet-56-v2", {3, 28, 28}}},
      {{"resnet-110-v2", {3, 28, 28}}},
  };
  CHECK(kj::size(CASES) == nn::NETWORKS.size());
  auto all = newFolder();
  kj::Vector<kj::StringPtr> words;
  for (auto word: {python(), "tests/peers/named_networks.py"_kj, all.asPtr()}) words.add(word);
  for (auto& each: CASES) {
    for (auto word: {each.network.name, each.images, each.type}) words.add(word);
  }
  RUN_SCRIPT(words, NO_TORCH);
  for (auto& each: CASES) {
    INFO(each.network.name);
    auto folder = kj::str(all, "/", each.network.name);
    auto skip = each.hasBiases ? nullptr : kj::arr(kj::str("conv0_bias"), kj::str("stage*_bias"));
    compare(graphOf(each.network, "torch"), folder, "weights.safetensors", skip);
  }
}

TEST_CASE("MXNet's weights give MXNet's logits, under the names of its scripts and its own ones") {
  struct Case {
    kj::StringPtr symbol;
    Network network;
    kj::StringPtr images = "16"_kj;
  };
  const Case CASES[] = {
      {"mlp", {"mlp", {1, 28, 28}}},
      {"lenet-bn", {"lenet-bn", {1, 28, 28}}},
      {"inception-bn-28-small", {"inception-bn-28-small", {3, 28, 28}}},
      {"inception-bn-28-small-2016", {"inception-bn-28-small", {3, 28, 28}}},
      {"inception-bn", {"inception-bn", {3, 224, 224}, 1000}, "4"},
      {"resnet-20", {"resnet-20", {3, 28, 28}}},
      {"resnet-20-v2", {"resnet-20-v2", {3, 28, 28}}},
  };
  auto all = newFolder();
  kj::Vector<kj::StringPtr> words;
  for (auto word: {python(), "tests/peers/mxnet_weights.py"_kj, all.asPtr()}) words.add(word);
  for (auto& each: CASES) {
    for (auto word: {each.symbol, each.images}) words.add(word);
  }
  RUN_SCRIPT(words, NO_MXNET);
  for (auto& each: CASES) {
    INFO(each.symbol);
    auto folder = kj::str(all, "/", each.symbol);
    compare(graphOf(each.network, "mxnet"), folder, "net-0001.params");
  }
}

TEST_CASE("LeNet that MXNet has trained on Fashion-MNIST is as accurate here") {
  auto all = newFolder();
  kj::StringPtr words[] = {
      python(), "tests/peers/mxnet_weights.py"_kj, all, "lenet"_kj, "10000"_kj};
  RUN_SCRIPT(words, NO_MXNET);
  auto folder = kj::str(all, "/lenet");
  auto graph = graphOf({"lenet", {1, 28, 28}}, "mxnet");
  auto correct = compare(graph, folder, "net-0001.params", nullptr, true);
  MESSAGE("correct of 10,000: ours ", correct.ours, ", MXNet's ", correct.theirs);
  CHECK(correct.theirs > 8000);
  CHECK(correct.ours + 1 >= correct.theirs);
  CHECK(correct.theirs + 1 >= correct.ours);
}

}  // namespace
}  // namespace tests

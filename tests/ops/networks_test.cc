// Compares whole networks in the CUDA program, whose work the host does, with the CPU's program.
// Unlike the cases of single ops, networks have many ops that share memory and gradients.
#include <doctest/doctest.h>
#include <kj/debug.h>

#include <cmath>

#include "configs/language/random.h"
#include "nn/cpu/cpu.h"
#include "nn/cuda/program.h"
#include "nn/cuda/testing/host_device.h"
#include "nn/network/model.h"
#include "tests/ops/cases.h"

namespace tests {
namespace {

struct Network {
  const char* name;
  nn::Shape input;
  uint batchSize;
};
constexpr Network NETWORKS[] = {{"mlp", {1, 28, 28}, 8}, {"lenet", {1, 28, 28}, 4},
    {"inception-bn-28-small", {3, 28, 28}, 2}, {"resnet-20", {3, 28, 28}, 2},
    {"airbench94", {3, 32, 32}, 2}};
constexpr uint CLASSES = 10;
// One of a few thousand values may be so close to the edge of a ReLU that rounding decides whether
// its gradient passes. Without such a value, gradients agree to a millionth.
constexpr double EDGES = 3e-2;

nn::Graph graphOf(const Network& network) {
  configs::Diagnostics diagnostics;
  auto document =
      configs::parse("x.toml", kj::str("network = \"", network.name, "\""), diagnostics);
  configs::Reading reading{diagnostics, {}};
  auto config = configs::readDocument(*document, reading, nn::ModelConfig::read);
  auto graph = nn::buildGraph(config, network.input, CLASSES, diagnostics);
  KJ_REQUIRE(diagnostics.count() == 0, diagnostics.format("x.toml"));
  return graph;
}

// As in the middle of training; `fill()` cannot do this if weights are made from images.
void fillAny(const nn::Graph& graph, nn::Program& program) {
  configs::Random random(1, configs::Purpose::INITIAL_VALUES);
  for (auto& key: graph.keys) {
    double scale = key.role == nn::Key::WEIGHT ? 1 / std::sqrt(double(key.cols)) : 0.2;
    double mean = key.role == nn::Key::GAMMA ? 1 : 0;
    for (float& value: program.parameters().slice(key.offset, key.offset + key.size)) {
      value = float(mean + scale * random.normal());
    }
  }
  for (auto& statistic: graph.statistics) {
    for (uint64_t i = 0; i < statistic.size; ++i) {
      program.statistics()[statistic.offset + i] = statistic.initialValue;
    }
  }
}

// Returns the difference relative to b. Both are Euclidean norms.
double distance(kj::ArrayPtr<const float> a, kj::ArrayPtr<const float> b) {
  double apart = 0, whole = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    apart += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
    whole += double(b[i]) * b[i];
  }
  return std::sqrt(apart / whole);
}

TEST_CASE("Networks: a CUDA program and a CPU program compute the same gradients and statistics") {
  for (auto& network: NETWORKS) {
    INFO(doctest::String(network.name));
    auto graph = graphOf(network);
    Case c = {network.name, network.input, CLASSES, network.batchSize, ""};
    auto batch = draw(c, 1);
    // The second step uses memory with leftovers of the first.
    auto onGpu = nn::cuda::newProgram(
        graph, kj::heap<nn::cuda::HostDevice>(), {.batchSize = network.batchSize});
    auto onCpu = nn::CPU.lower(graph, {.batchSize = network.batchSize});
    fillAny(graph, *onGpu);
    fillAny(graph, *onCpu);
    for (uint round = 0; round < 2; ++round) {
      nn::BatchResult results[2];
      for (auto* program: {onGpu.get(), onCpu.get()}) {
        program->setBatch(batch.pixels, batch.labels, batch.draws);
        results[program == onCpu.get()] = step(graph, *program, nn::Phase::TRAIN);
      }
      CHECK(results[0].lossSum == doctest::Approx(results[1].lossSum).epsilon(1e-4));
      CHECK(results[0].images == results[1].images);
      CHECK(distance(onGpu->gradients(), onCpu->gradients()) < EDGES);
      CHECK(
          (graph.statisticsSize == 0 || distance(onGpu->statistics(), onCpu->statistics()) < 1e-5));
    }
    for (auto* program: {onGpu.get(), onCpu.get()}) step(graph, *program, nn::Phase::VALIDATE);
    CHECK(distance(onGpu->logits(), onCpu->logits()) < 1e-4);
  }
}

}  // namespace
}  // namespace tests

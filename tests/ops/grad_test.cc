// Compares the reference's gradients with finite differences of its own loss, in double.
#include <doctest/doctest.h>

#include <cmath>

#include "configs/language/random.h"
#include "nn/reference/reference.h"
#include "tests/ops/cases.h"

namespace tests {
namespace {

constexpr uint SAMPLES = 20;  // parameters of a case

double lossOf(const nn::Graph& graph, nn::Program& program) {
  for (uint s = 0; s < graph.segments.size(); ++s) program.forward(nn::Phase::TRAIN, s);
  return program.result().lossSum;
}

// The central difference over about ±h, divided by the actual step in float32.
double slope(const nn::Graph& graph, nn::Program& program, float& parameter, float h) {
  float value = parameter;
  float above = value + h, below = value - h;
  parameter = above;
  double higher = lossOf(graph, program);
  parameter = below;
  double lower = lossOf(graph, program);
  parameter = value;
  return (higher - lower) / (double(above) - below);
}

TEST_CASE("Ops: the gradients of the reference are the slopes of its loss") {
  uint sampled = 0, onEdges = 0;
  for (auto& c: CASES) {
    INFO(doctest::String(c.name));
    auto built = build(c);
    auto& graph = built.graph;
    auto program = nn::REFERENCE.lower(graph, {.batchSize = c.batchSize});
    fill(graph, *program);
    auto batch = draw(c, 1);
    program->setBatch(batch.pixels, batch.labels, batch.draws);
    step(graph, *program, nn::Phase::TRAIN);
    auto gradients = kj::heapArray<float>(program->gradients());

    configs::Random random(3, configs::Purpose::ORDER);
    for (uint i = 0; i < SAMPLES; ++i) {
      // Takes keys in turn, so that small ones are sampled, too.
      auto& key = graph.keys[i % graph.keys.size()];
      auto& op = graph.nodes[key.node].op;
      if (key.role == nn::Key::GAMMA && op.get<nn::BatchNorm>().fixedGamma) {
        CHECK(gradients[key.offset] == 0);
        continue;
      }
      size_t index = key.offset + random.below(key.size);
      float& parameter = program->parameters()[index];
      double coarse = slope(graph, *program, parameter, 0x1p-12f);
      double fine = slope(graph, *program, parameter, 0x1p-13f);
      ++sampled;
      // The error of a smooth slope falls with h². Where the two differ by more, a maximum or a
      // ReLU switched.
      double tolerance = 2e-6 * (std::abs(fine) + 1);
      if (std::abs(coarse - fine) > tolerance) {
        ++onEdges;
        continue;
      }
      INFO(doctest::String(key.name.cStr()));
      CHECK(std::abs(gradients[index] - fine) <= tolerance);
    }
  }
  CHECK(sampled > 500);
  CHECK(onEdges < sampled / 20);
}

}  // namespace
}  // namespace tests

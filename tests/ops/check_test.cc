// Each backend against the reference, on every case: losses, gradients, statistics and logits of
// validation.
#include <doctest/doctest.h>

#include <cmath>

#include "nn/cpu/cpu.h"
#include "nn/reference/reference.h"
#include "tests/ops/cases.h"

namespace tests {
namespace {

// The reference is checked against itself too: that shows that a program keeps nothing from step to
// step.
const nn::Backend* const BACKENDS[] = {&nn::REFERENCE, &nn::CPU};

double norm(kj::ArrayPtr<const float> values) {
  double squares = 0;
  for (float value: values) squares += double(value) * value;
  return std::sqrt(squares);
}

double distance(kj::ArrayPtr<const float> a, kj::ArrayPtr<const float> b) {
  REQUIRE(a.size() == b.size());
  double squares = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    double d = double(a[i]) - b[i];
    squares += d * d;
  }
  return std::sqrt(squares);
}

void checkGradients(
    const nn::Graph& graph, nn::Program& program, nn::Program& reference, double tolerance) {
  // A bias in front of batch norm has no gradient but rounding noise: an array is measured by a
  // hundredth of the whole gradient if its own is smaller.
  double least = 0.01 * norm(reference.gradients());
  for (auto& key: graph.keys) {
    INFO(doctest::String(key.name.cStr()));
    auto expected = reference.gradients().slice(key.offset, key.offset + key.size);
    auto found = program.gradients().slice(key.offset, key.offset + key.size);
    CHECK(distance(found, expected) <= tolerance * kj::max(norm(expected), least));
  }
}

void checkStatistics(
    const nn::Graph& graph, nn::Program& program, nn::Program& reference, double tolerance) {
  for (auto& statistic: graph.statistics) {
    INFO(doctest::String(statistic.name.cStr()));
    auto expected =
        reference.statistics().slice(statistic.offset, statistic.offset + statistic.size);
    auto found = program.statistics().slice(statistic.offset, statistic.offset + statistic.size);
    CHECK(distance(found, expected) <= tolerance * kj::max(norm(expected), 1));
  }
}

void check(const nn::Backend& backend, const Case& c, uint threads) {
  auto built = build(c);
  auto& graph = built.graph;
  auto program = backend.lower(graph, {.batchSize = c.batchSize, .threads = threads});
  auto reference = nn::REFERENCE.lower(graph, {.batchSize = c.batchSize});
  fill(graph, *program);
  fill(graph, *reference);

  // Two steps: what the first leaves behind must not show in the second.
  for (uint64_t seed: {1, 2}) {
    auto batch = draw(c, seed);
    program->setBatch(batch.pixels, batch.labels, batch.draws);
    reference->setBatch(batch.pixels, batch.labels, batch.draws);
    auto found = step(graph, *program, nn::Phase::TRAIN);
    auto expected = step(graph, *reference, nn::Phase::TRAIN);
    CHECK(found.lossSum == doctest::Approx(expected.lossSum).epsilon(c.tolerance));
    CHECK(found.correct == expected.correct);
    CHECK(found.images == expected.images);
    checkGradients(graph, *program, *reference, c.tolerance);
    checkStatistics(graph, *program, *reference, c.tolerance);
  }

  auto batch = draw(c, 3);
  program->setBatch(batch.pixels, batch.labels, batch.draws);
  reference->setBatch(batch.pixels, batch.labels, batch.draws);
  auto before = kj::heapArray<float>(program->statistics());
  auto found = step(graph, *program, nn::Phase::VALIDATE);
  auto expected = step(graph, *reference, nn::Phase::VALIDATE);
  CHECK(found.correct == expected.correct);
  CHECK(
      distance(program->logits(), reference->logits()) <= c.tolerance * norm(reference->logits()));
  // Validation leaves the statistics alone.
  CHECK(distance(program->statistics(), before) == 0);
}

TEST_CASE(
    "Ops: every backend agrees with the reference on every case, with one thread and with two") {
  for (auto backend: BACKENDS) {
    INFO(doctest::String(backend->name));
    for (auto& c: CASES) {
      INFO(doctest::String(c.name));
      for (uint threads: {1, 2}) {
        INFO(threads << " threads");
        check(*backend, c, threads);
      }
    }
  }
}

}  // namespace
}  // namespace tests

// Compares each backend with the reference on every case: losses, gradients, statistics and logits
// of validation.
#include <doctest/doctest.h>
#include <kj/exception.h>
#include <string.h>

#include <cmath>

#include "configs/language/reader.h"
#include "nn/cpu/cpu.h"
#include "nn/cpu/instruction_set.h"
#include "nn/cuda/cuda.h"
#include "nn/cuda/presence.h"
#include "nn/cuda/program.h"
#include "nn/cuda/testing/host_device.h"
#include "nn/loops/floats.h"
#include "nn/optimizer/value_rules.h"
#include "nn/reference/reference.h"
#include "tests/ops/cases.h"
#include "tests/skip.h"

namespace tests {
namespace {

// The CUDA program on a fake GPU, whose work the host does.
constexpr nn::Backend CUDA_ON_HOST = {.name = "cuda, done by the host",
    .doc = "",
    .lower = [](const nn::Graph& graph, nn::ProgramOptions options) {
      return nn::cuda::newProgram(graph, kj::heap<nn::cuda::HostDevice>(), options);
    }};

// The reference is checked against itself too: that shows that a program keeps nothing from step to
// step.
const nn::Backend* const BACKENDS[] = {&nn::REFERENCE, &nn::CPU, &CUDA_ON_HOST};

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
  // The gradient of a bias before a batch norm is only rounding noise: an array is measured by a
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

// The allowed distance of a program from the reference, relative to the whole array.
struct Tolerance {
  double loss, logits, gradients, statistics;
};

Tolerance toleranceOf(const Case& c, nn::Precision precision) {
  if (precision == nn::Precision::FP32) return {c.tolerance, c.tolerance, c.tolerance, c.tolerance};
  // A bfloat16 is off by up to 2^-9. In most arrays, errors add up to 4e-3. In small ones, such as
  // the gradients of biases, which are sums that cancel, they reach 3e-2. If a value is close to
  // the edge of a ReLU or to another maximum, rounding may move it and its gradient across. With
  // images as small as these, that changes up to a quarter of an array.
  bool hasEdges = strstr(c.layers, "relu") != nullptr || strstr(c.layers, "max") != nullptr;
  Tolerance ofBf16{3e-2, 2e-2, hasEdges ? 0.4 : 5e-2, 3e-3};
  if (precision == nn::Precision::BF16) return ofBf16;
  // Halves, and factors of TF32, have three bits more. At edges, that makes no difference.
  return {ofBf16.loss / 8, ofBf16.logits / 8, hasEdges ? 0.4 : 5e-2 / 8, ofBf16.statistics / 8};
}

void check(const nn::Backend& backend, nn::Precision precision, const Case& c, uint threads) {
  auto tolerance = toleranceOf(c, precision);
  bool isExact = precision == nn::Precision::FP32;
  auto built = build(c);
  auto& graph = built.graph;
  auto program = backend.lower(graph,
      {.batchSize = c.batchSize, .threads = threads, .precision = precision, .lossScale = 64});
  auto reference = nn::REFERENCE.lower(graph, {.batchSize = c.batchSize});
  fill(graph, *program);
  fill(graph, *reference);

  // Two steps, because leftovers of the first must not affect the second.
  for (uint64_t seed: {1, 2}) {
    auto batch = draw(c, seed);
    program->setBatch(batch.pixels, batch.labels, batch.draws);
    reference->setBatch(batch.pixels, batch.labels, batch.draws);
    auto found = step(graph, *program, nn::Phase::TRAIN);
    auto expected = step(graph, *reference, nn::Phase::TRAIN);
    CHECK(found.lossSum == doctest::Approx(expected.lossSum).epsilon(tolerance.loss));
    if (isExact) CHECK(found.correct == expected.correct);
    CHECK(found.images == expected.images);
    checkGradients(graph, *program, *reference, tolerance.gradients);
    checkStatistics(graph, *program, *reference, tolerance.statistics);
  }

  auto batch = draw(c, 3);
  program->setBatch(batch.pixels, batch.labels, batch.draws);
  reference->setBatch(batch.pixels, batch.labels, batch.draws);
  auto before = kj::heapArray<float>(program->statistics());
  auto found = step(graph, *program, nn::Phase::VALIDATE);
  auto expected = step(graph, *reference, nn::Phase::VALIDATE);
  if (isExact) CHECK(found.correct == expected.correct);
  CHECK(distance(program->logits(), reference->logits()) <=
        tolerance.logits * norm(reference->logits()));
  // Validation does not change the statistics.
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
        check(*backend, nn::Precision::FP32, c, threads);
      }
    }
  }
}

constexpr nn::RunLength RUN{.updatesPerEpoch = 3, .updates = 3};

nn::UpdateRules someRules() {
  configs::Diagnostics diagnostics;
  auto document = configs::parse("x.toml",
      "optimizer = { kind = \"sgd\", learning_rate = 0.1, momentum = 0.9 }\n[lookahead]\nevery = 2",
      diagnostics);
  configs::Reading reading{diagnostics, {}};
  auto rules = configs::readDocument(*document, reading,
      [](configs::Reader& reader) { return nn::UpdateRules::read(reader, nn::CONVENTIONS[0]); });
  REQUIRE(diagnostics.count() == 0);
  return rules;
}

// Updates a program's parameters by its gradients, key by key.
class KeyUpdates {
public:
  KeyUpdates(const nn::Graph& graph, const nn::UpdateRules& rules, nn::Program& program)
      : graph(graph),
        rules(rules),
        program(program),
        momentum(nn::zeros(graph.parameters)),
        next(kj::heapArray<float>(program.parameters().asConst())),
        slow(kj::heapArray<float>(program.parameters().asConst())),
        slowStatistics(kj::heapArray<float>(program.statistics().asConst())) {}

  void update(uint64_t number, float rescale) {
    for (auto& key: graph.keys) {
      auto rule = rules.of(key);
      if (rule.isFrozen()) continue;
      auto of = [&](kj::ArrayPtr<float> flat) {
        return flat.slice(key.offset, key.offset + key.size);
      };
      rule.optimizer->apply({.gradient = of(program.gradients()),
          .rescale = rescale,
          .current = of(program.parameters()),
          .next = of(next),
          .state = of(momentum),
          .learningRate = rule.learningRate(number, RUN),
          .decay = rule.decay(),
          .number = number});
    }
    nn::copy(next, program.parameters());
    auto& lookahead = KJ_ASSERT_NONNULL(rules.lookahead);
    lookahead.apply(number, RUN, program.parameters(), slow);
    lookahead.apply(number, RUN, program.statistics(), slowStatistics);
  }

private:
  const nn::Graph& graph;
  const nn::UpdateRules& rules;
  nn::Program& program;
  kj::Array<float> momentum;
  kj::Array<float> next;
  kj::Array<float> slow;
  kj::Array<float> slowStatistics;
};

// Compares a backend whose programs update their parameters themselves with the reference and the
// optimizer's loop.
void checkUpdates(const nn::Backend& backend, const Case& c) {
  auto built = build(c);
  auto& graph = built.graph;
  float rescale = 1.0f / c.batchSize;
  auto rules = someRules();
  auto updates = KJ_ASSERT_NONNULL(nn::ValueRules::of(rules, graph.keys, RUN, rescale));
  auto program = backend.lower(graph, {.batchSize = c.batchSize});
  auto reference = nn::REFERENCE.lower(graph, {.batchSize = c.batchSize});
  fill(graph, *program);
  fill(graph, *reference);
  auto first = kj::heapArray<float>(reference->parameters().asConst());
  KeyUpdates byKeys(graph, rules, *reference);
  auto& trainer = KJ_ASSERT_NONNULL(program->trainBy(updates));
  nn::BatchResult sums;
  for (uint64_t number = 0; number < RUN.updates; ++number) {
    auto batch = draw(c, number + 1);
    program->setBatch(batch.pixels, batch.labels, batch.draws);
    trainer.step(number);
    reference->setBatch(batch.pixels, batch.labels, batch.draws);
    auto result = step(graph, *reference, nn::Phase::TRAIN);
    byKeys.update(number, rescale);
    sums.lossSum += result.lossSum;
    sums.images += result.images;
  }
  // The error of an update also affects the gradients of the next step.
  double tolerance = 50 * c.tolerance;
  auto found = trainer.runningSums();
  CHECK(found.lossSum == doctest::Approx(sums.lossSum).epsilon(tolerance));
  CHECK(found.images == sums.images);
  double moved = distance(reference->parameters(), first);
  CHECK(moved > 0);
  CHECK(distance(program->parameters(), reference->parameters()) <= tolerance * moved);
  checkStatistics(graph, *program, *reference, tolerance);
}

TEST_CASE("Ops: the updates of a CUDA program equal those of the optimizer on every case") {
  for (auto& c: CASES) {
    INFO(doctest::String(c.name));
    checkUpdates(CUDA_ON_HOST, c);
  }
}

TEST_CASE("Ops: the updates of cuda:0 equal those of the optimizer on every case") {
  KJ_IF_MAYBE(why, nn::cuda::whyNot(nn::cuda::presence(), 0)) SKIP_CASE(why->cStr());
  for (auto& c: CASES) {
    INFO(doctest::String(c.name));
    checkUpdates(nn::cuda::CUDA, c);
  }
}

TEST_CASE("Ops: cuda:0 agrees with the reference on every case, in every precision") {
  KJ_IF_MAYBE(why, nn::cuda::whyNot(nn::cuda::presence(), 0)) SKIP_CASE(why->cStr());
  for (auto& c: CASES) {
    INFO(doctest::String(c.name));
    for (auto precision:
        {nn::Precision::FP32, nn::Precision::TF32, nn::Precision::BF16, nn::Precision::FP16}) {
      INFO("precision " << uint(precision));
      check(nn::cuda::CUDA, precision, c, 1);
    }
  }
}

TEST_CASE(
    "Ops: the CUDA program agrees with the reference in bf16 and fp16, within their precision") {
  for (auto& c: CASES) {
    INFO(doctest::String(c.name));
    for (auto precision: {nn::Precision::BF16, nn::Precision::FP16}) {
      INFO("precision " << uint(precision));
      check(CUDA_ON_HOST, precision, c, 1);
    }
  }
}

// A separate program, because a process fixes its level once.
TEST_CASE("Ops: AMX agrees with the reference on every case, within the precision of bfloat16") {
  if (kj::runCatchingExceptions([]() { nn::requirePrecision(nn::Precision::BF16); }) != nullptr) {
    SKIP_CASE("no AVX512_BF16 here");
  }
  nn::useInstructionSet("avx512_amx");
  for (auto& c: CASES) {
    INFO(doctest::String(c.name));
    // AMX needs 8 images. Three threads share the groups of images.
    for (uint threads: {1, 3}) {
      INFO(threads << " threads");
      Case larger = c;
      larger.batchSize += 16;
      check(nn::CPU, nn::Precision::BF16, larger, threads);
    }
  }
}

TEST_CASE("Ops: the CPU agrees with the reference in bfloat16, within its precision") {
  if (kj::runCatchingExceptions([]() { nn::requirePrecision(nn::Precision::BF16); }) != nullptr) {
    SKIP_CASE("no AVX512_BF16 here");
  }
  for (auto& c: CASES) {
    INFO(doctest::String(c.name));
    for (uint threads: {1, 2}) {
      INFO(threads << " threads");
      check(nn::CPU, nn::Precision::BF16, c, threads);
    }
  }
}

}  // namespace
}  // namespace tests

// Compares a program that updates its parameters itself with the worker's loop and a local store.
// The host does the work of a GPU.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <string.h>

#include <cmath>

#include "configs/language/random.h"
#include "nn/cuda/program.h"
#include "nn/cuda/testing/host_device.h"
#include "nn/loops/floats.h"
#include "nn/network/initializer.h"
#include "rpc/store/kv_store.h"
#include "runner/experiment/model_facts.h"
#include "runner/roles/store_updater.h"

namespace runner {
namespace {

constexpr uint BATCH = 4;
constexpr uint STEPS = 20;

struct Settings {
  LoadedExperiment loaded;
  const Experiment& experiment;
  ModelFacts facts;
  StoreUpdater updater;

  explicit Settings(kj::ArrayPtr<const kj::StringPtr> overrides)
      : loaded(load(overrides)),
        experiment(KJ_ASSERT_NONNULL(loaded.experiment)),
        facts(experiment),
        updater(experiment, facts) {}

private:
  static LoadedExperiment load(kj::ArrayPtr<const kj::StringPtr> more) {
    kj::Vector<kj::StringPtr> overrides;
    for (auto override: {"data.batch_size=4"_kj, "train.steps=20"_kj}) overrides.add(override);
    overrides.addAll(more);
    auto loaded = loadExperiment("configs/mnist_mlp_local.toml", overrides);
    CAPTURE(loaded.errors.cStr());
    REQUIRE(loaded.experiment != nullptr);
    return loaded;
  }
};

// Returns settings with every kind of key and with moving statistics. Groups of keys have their own
// optimizers, schedules and lengths.
Settings manifold() {
  kj::StringPtr overrides[] = {"model.network=lenet-bn"_kj,
      "train.groups=[{ keys = [\"*_beta\"], optimizer = { kind = \"adam\" } }, { keys = "
      "[\"conv1_weight\"], learning_rate_factor = 0 }, { keys = [\"conv2_weight\"], epochs = "
      "0.0007 "
      "}, { keys = [\"fc_*\"], optimizer = { kind = \"rmsprop\", learning_rate = 0.01 }, schedule "
      "= "
      "{ kind = \"cosine\" } }]"_kj,
      "train.lookahead={ every = 3, decay = 0.9, power = 1 }"_kj};
  return Settings(overrides);
}

struct Batch {
  kj::Array<float> pixels;
  kj::Array<int32_t> labels;
};

Batch draw(const nn::Graph& graph, uint64_t step) {
  configs::Random random(step, configs::Purpose::INITIAL_VALUES);
  Batch batch{
      kj::heapArray<float>(BATCH * graph.inputShape().size()), kj::heapArray<int32_t>(BATCH)};
  for (auto& pixel: batch.pixels) pixel = random.normal();
  for (auto n: kj::indices(batch.labels)) batch.labels[n] = (step * 7 + n * 3) % graph.classes;
  return batch;
}

kj::Own<nn::Program> programOf(const Settings& settings) {
  auto& graph = settings.facts.graph;
  auto program =
      nn::cuda::newProgram(graph, kj::heap<nn::cuda::HostDevice>(nn::cuda::Late{.work = true}),
          {.batchSize = BATCH, .deterministic = true});
  nn::initialize(graph, settings.experiment.model.initializer, 1, program->parameters(),
      program->statistics());
  return program;
}

bool isSame(const nn::BatchResult& a, const nn::BatchResult& b) {
  return a.lossSum == b.lossSum && a.correct == b.correct && a.images == b.images;
}

bool sameBits(kj::ArrayPtr<const float> a, kj::ArrayPtr<const float> b) {
  return a.size() == b.size() && memcmp(a.begin(), b.begin(), a.size() * sizeof(float)) == 0;
}

nn::BatchResult validate(const nn::Graph& graph, nn::Program& program) {
  auto batch = draw(graph, STEPS);
  program.setBatch(batch.pixels, batch.labels, nullptr);
  for (uint s = 0; s < graph.segments.size(); ++s) program.forward(nn::Phase::VALIDATE, s);
  return program.result();
}

// Trains as a worker does with a store. Returns the sums over all steps.
nn::BatchResult trainWithStore(Settings& settings, nn::Program& program) {
  auto& graph = settings.facts.graph;
  auto& segments = graph.segments;
  auto placement = placementOf(settings.experiment, graph);
  auto store = rpc::newLocalStore(placement, settings.experiment.rounds(), settings.updater,
      program.parameters(), program.gradients());
  store->initialize();
  auto slow = kj::heapArray<float>(program.statistics());
  nn::BatchResult sums;
  for (uint step = 0; step < STEPS; ++step) {
    auto batch = draw(graph, step);
    program.setBatch(batch.pixels, batch.labels, nullptr);
    for (uint s = 0; s < segments.size(); ++s) {
      store->await(step, segments[s].parameters.begin, segments[s].parameters.end);
      program.forward(nn::Phase::TRAIN, s);
    }
    nn::backwardAll(program, segments.size(), [&](uint s) {
      store->push(step, segments[s].parameters.begin, segments[s].parameters.end);
    });
    sums.add(program.result());
    KJ_IF_MAYBE(lookahead, settings.experiment.train.rules.lookahead) {
      lookahead->apply(step, settings.updater.runLength(), program.statistics(), slow);
    }
  }
  return sums;
}

TEST_CASE("Trainer: a program that updates its parameters ends with those of the local store") {
  auto settings = manifold();
  auto& graph = settings.facts.graph;
  auto expected = programOf(settings);
  auto expectedSums = trainWithStore(settings, *expected);

  auto updates = KJ_ASSERT_NONNULL(settings.updater.byValue());
  auto program = programOf(settings);
  auto& trainer = KJ_ASSERT_NONNULL(program->trainBy(updates));
  auto begun = program->parameters();
  auto initial = kj::heapArray<float>(begun.asConst());
  for (uint step = 0; step < STEPS; ++step) {
    auto batch = draw(graph, step);
    program->setBatch(batch.pixels, batch.labels, nullptr);
    trainer.step(step);
    // Nothing but the first values comes from the host.
    if (step == 0) {
      program->result();  // waits until the device has them
      for (auto& value: begun) value = NAN;
    }
  }
  CHECK(isSame(trainer.runningSums(), expectedSums));
  CHECK(isSame(program->result(), expected->result()));

  // Validation needs nothing from the host either.
  trainer.restartSums();
  auto validated = validate(graph, *program);
  CHECK(isSame(validated, validate(graph, *expected)));
  CHECK(isSame(trainer.runningSums(), validated));

  CHECK(sameBits(program->statistics(), expected->statistics()));
  CHECK(sameBits(program->parameters(), expected->parameters()));
  for (auto& key: graph.keys) {
    INFO(doctest::String(key.name.cStr()));
    nn::Range range{key.offset, key.offset + key.size};
    // A bias before a batch norm has no gradient.
    bool isBeforeNorm = key.role == nn::Key::BIAS && key.name.startsWith("conv");
    bool isHeld = settings.experiment.train.rules.of(key).isFrozen() || isBeforeNorm;
    CHECK(isHeld == sameBits(program->parameters().slice(range.begin, range.end),
                        initial.slice(range.begin, range.end)));
  }
}

TEST_CASE("Trainer: continues with the values that are written to the parameters") {
  auto settings = manifold();
  auto& graph = settings.facts.graph;
  auto updates = KJ_ASSERT_NONNULL(settings.updater.byValue());
  auto expected = programOf(settings), program = programOf(settings);
  auto& trainer = KJ_ASSERT_NONNULL(program->trainBy(updates));
  auto batch = draw(graph, 0);
  program->setBatch(batch.pixels, batch.labels, nullptr);
  trainer.step(0);
  CHECK(!sameBits(program->parameters(), expected->parameters()));
  nn::copy(expected->parameters(), program->parameters());
  nn::copy(expected->statistics(), program->statistics());
  CHECK(isSame(validate(graph, *program), validate(graph, *expected)));
}

TEST_CASE("Trainer: a loss of nan stays in the sums until they restart") {
  auto settings = manifold();
  auto& graph = settings.facts.graph;
  auto updates = KJ_ASSERT_NONNULL(settings.updater.byValue());
  auto program = programOf(settings);
  auto& trainer = KJ_ASSERT_NONNULL(program->trainBy(updates));
  auto batch = draw(graph, 0);
  batch.pixels[5] = NAN;
  program->setBatch(batch.pixels, batch.labels, nullptr);
  for (uint s = 0; s < graph.segments.size(); ++s) program->forward(nn::Phase::VALIDATE, s);
  CHECK(std::isfinite(validate(graph, *program).lossSum));
  CHECK(!std::isfinite(trainer.runningSums().lossSum));
  trainer.restartSums();
  CHECK(std::isfinite(validate(graph, *program).lossSum));
  CHECK(std::isfinite(trainer.runningSums().lossSum));
}

TEST_CASE(
    "StoreUpdater: does not let the program update if gradients are exchanged or keys stay whole") {
  kj::StringPtr local[] = {"kvstore.mode=local"_kj};
  CHECK(Settings(local).updater.byValue() != nullptr);
  kj::StringPtr device[] = {"kvstore.mode=device"_kj};
  CHECK(Settings(device).updater.byValue() != nullptr);
  kj::StringPtr sync[] = {
      "kvstore.mode=dist_sync"_kj, "cluster.servers=1"_kj, "cluster.workers=1"_kj};
  CHECK(Settings(sync).updater.byValue() == nullptr);
  kj::StringPtr lars[] = {"train.optimizer={ kind = \"lars\" }"_kj};
  CHECK(Settings(lars).updater.byValue() == nullptr);
}

}  // namespace
}  // namespace runner

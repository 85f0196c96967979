#include "runner/store_updater.h"

#include <doctest/doctest.h>
#include <kj/debug.h>

#include "runner/model_facts.h"

namespace runner {
namespace {

// The first round of two workers of batch 100 on MNIST whose learning rate is not that of round 0,
// when it drops after every epoch.
uint64_t firstDrop(kj::StringPtr mode, kj::StringPtr part) {
  auto modeWord = kj::str("kvstore.mode=", mode), partWord = kj::str("data.part=", part);
  kj::StringPtr overrides[] = {modeWord, partWord, "cluster.servers=1", "cluster.workers=2",
      "data.batch_size=100", "train.schedule={ kind = \"factor\", every_epochs = 1, factor = 0.5 }",
      "train.optimizer={ kind = \"sgd\", learning_rate = 1, momentum = 0 }"};
  auto loaded = loadExperiment("configs/mnist_mlp_local.toml", overrides);
  CAPTURE(loaded.errors.cStr());
  REQUIRE(loaded.experiment != nullptr);
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  ModelFacts facts(experiment);
  StoreUpdater updater(experiment, facts);
  auto state = kj::heapArray<float>(updater.stateArrays());
  float gradient[] = {1}, current[] = {0}, first[1], next[1];
  rpc::Slice slice{.key = 0, .offset = 0, .size = 1, .shard = 0};
  updater.update(slice, 0, gradient, current, first, state);
  REQUIRE(first[0] < 0);
  for (uint64_t round = 1; round < 5000; round++) {
    updater.update(slice, round, gradient, current, next, state);
    if (next[0] != first[0]) return round;
  }
  return 0;
}

TEST_CASE("an epoch of a schedule has as many updates as the store makes in it") {
  CHECK(firstDrop("dist_sync", "split") == 300);
  CHECK(firstDrop("dist_async", "split") == 600);
  CHECK(firstDrop("dist_sync", "whole") == 600);
  CHECK(firstDrop("dist_async", "whole") == 1200);
  CHECK(firstDrop("dist_async", "same") == 1200);
}

TEST_CASE("a schedule over the whole run ends with the store's last update in every mode") {
  struct {
    kj::StringPtr mode, part, length;
    uint64_t updates;
  } rows[] = {{"dist_sync", "split", "epochs=2", 600}, {"dist_async", "split", "epochs=2", 1200},
      {"dist_sync", "same", "epochs=2", 1200}, {"dist_sync", "split", "steps=77", 77},
      {"dist_async", "split", "steps=77", 78}};
  for (auto& row: rows) {
    auto mode = kj::str("kvstore.mode=", row.mode), part = kj::str("data.part=", row.part);
    auto length = kj::str("train.", row.length);
    kj::StringPtr overrides[] = {mode, part, length, "cluster.servers=1", "cluster.workers=2",
        "data.batch_size=100", "train.schedule={ kind = \"poly\" }"};
    auto loaded = loadExperiment("configs/mnist_mlp_local.toml", overrides);
    CAPTURE(loaded.errors.cStr());
    REQUIRE(loaded.experiment != nullptr);
    auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
    ModelFacts facts(experiment);
    StoreUpdater updater(experiment, facts);
    CHECK(updater.learningRate(row.updates - 1) > 0);
    CHECK(updater.learningRate(row.updates) == 0);
  }
}

}  // namespace
}  // namespace runner

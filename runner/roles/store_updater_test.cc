#include "runner/roles/store_updater.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/vector.h>

#include "runner/experiment/model_facts.h"
#include "runner/experiment/run_length.h"

namespace runner {
namespace {

// An MNIST experiment with batch size 100 and `overrides`, and its updater.
struct Loaded {
  LoadedExperiment loaded;
  const Experiment& experiment;
  ModelFacts facts;
  StoreUpdater updater;

  explicit Loaded(kj::ArrayPtr<const kj::StringPtr> overrides)
      : loaded(load(overrides)),
        experiment(KJ_ASSERT_NONNULL(loaded.experiment)),
        facts(experiment),
        updater(experiment, facts) {}

private:
  static LoadedExperiment load(kj::ArrayPtr<const kj::StringPtr> overrides) {
    kj::Vector<kj::StringPtr> all;
    all.add("data.batch_size=100");
    all.addAll(overrides);
    auto loaded = loadExperiment("configs/mnist_mlp_local.toml", all);
    CAPTURE(loaded.errors.cStr());
    REQUIRE(loaded.experiment != nullptr);
    return loaded;
  }
};

// Returns the first round whose learning rate differs from that of round 0. Two workers of batch
// 100 train on MNIST, and the rate drops after every epoch.
uint64_t firstDrop(kj::StringPtr mode, kj::StringPtr part) {
  auto modeWord = kj::str("kvstore.mode=", mode), partWord = kj::str("data.part=", part);
  kj::StringPtr overrides[] = {modeWord, partWord, "cluster.servers=1", "cluster.workers=2",
      "train.schedule={ kind = \"factor\", every_epochs = 1, factor = 0.5 }",
      "train.optimizer={ kind = \"sgd\", learning_rate = 1, momentum = 0 }"};
  Loaded made(overrides);
  auto& updater = made.updater;
  float gradient[] = {1}, current[] = {0}, first[1], next[1];
  rpc::Slice slice{.key = 0, .offset = 0, .size = 1, .shard = 0};
  auto state = kj::heapArray<float>(updater.stateArrays(slice));
  updater.update(slice, {0, gradient}, current, first, state);
  REQUIRE(first[0] < 0);
  for (uint64_t round = 1; round < 5000; round++) {
    updater.update(slice, {round, gradient}, current, next, state);
    if (next[0] != first[0]) return round;
  }
  return 0;
}

TEST_CASE("StoreUpdater: a schedule's epoch has as many updates as the store makes per epoch") {
  CHECK(firstDrop("dist_sync", "split") == 300);
  CHECK(firstDrop("dist_async", "split") == 600);
  CHECK(firstDrop("local_sgd", "split") == 300);
  CHECK(firstDrop("dist_sync", "whole") == 600);
  CHECK(firstDrop("dist_async", "whole") == 1200);
  CHECK(firstDrop("dist_async", "same") == 1200);
}

TEST_CASE("StoreUpdater: in every mode, a schedule over the run ends with the last update") {
  struct {
    kj::StringPtr mode, part, length;
    uint64_t updates;
  } rows[] = {{"dist_sync", "split", "epochs=2", 600}, {"dist_async", "split", "epochs=2", 1200},
      {"dist_sync", "same", "epochs=2", 1200}, {"dist_sync", "split", "steps=77", 77},
      {"local_sgd", "split", "epochs=2", 600}, {"local_sgd", "split", "steps=77", 77},
      {"dist_async", "split", "steps=77", 78}};
  for (auto& row: rows) {
    auto mode = kj::str("kvstore.mode=", row.mode), part = kj::str("data.part=", row.part);
    auto length = kj::str("train.", row.length);
    kj::StringPtr overrides[] = {mode, part, length, "cluster.servers=1", "cluster.workers=2",
        "train.schedule={ kind = \"poly\" }"};
    Loaded made(overrides);
    auto& updater = made.updater;
    CHECK(updater.learningRate(row.updates - 1) > 0);
    CHECK(updater.learningRate(row.updates) == 0);
  }
}

TEST_CASE("StoreUpdater: an update takes two steps if one worker fills a round of two pushes") {
  struct {
    kj::StringPtr length;
    uint64_t steps, updates;
  } rows[] = {{"epochs=2", 1200, 600}, {"steps=77", 154, 77}};
  for (auto& row: rows) {
    auto length = kj::str("train.", row.length);
    kj::StringPtr overrides[] = {"kvstore.mode=dist_sync", "kvstore.aggregate=2",
        "kvstore.aggregate_from=any", length, "cluster.servers=1", "cluster.workers=1"};
    Loaded made(overrides);
    CHECK(made.facts.steps(made.experiment) == row.steps);
    CHECK(made.updater.runLength().updates == row.updates);
    CHECK(made.updater.runLength().updatesPerEpoch == 300);
  }
}

TEST_CASE("StoreUpdater: with staleness_aware, divides the rate by the staleness of the gradient") {
  kj::StringPtr overrides[] = {"kvstore.mode=dist_async", "kvstore.staleness_aware=true",
      "cluster.servers=1", "cluster.workers=2",
      "train.optimizer={ kind = \"sgd\", learning_rate = 1, momentum = 0, weight_decay = 0 }"};
  Loaded made(overrides);
  auto updater = shardUpdater(made.experiment, made.facts);
  rpc::Slice slice{.key = 0, .offset = 0, .size = 1, .shard = 0};
  auto state = kj::heapArray<float>(updater->stateArrays(slice));
  for (uint64_t staleness: {0, 1, 2, 4}) {
    float gradient[] = {800}, current[] = {0}, next[1];
    updater->update(slice, {5, gradient, 1, staleness}, current, next, state);
    CHECK(next[0] == -8.0f / kj::max(uint64_t(1), staleness));
  }
}

// An experiment with a network of two dense layers (fc1, fc2, ...: `explain` shows them) on MNIST:
// 600 updates per epoch.
Loaded grouped(kj::StringPtr groups) {
  auto given = kj::str("train.groups=", groups);
  kj::StringPtr overrides[] = {given, "train.epochs=3",
      "train.optimizer={ kind = \"sgd\", learning_rate = 0.5, momentum = 0.5, weight_decay = 0.25 "
      "}",
      "train.schedule={ kind = \"poly\" }"};
  return Loaded(overrides);
}

// Returns a value of `key` after update `round`. It was 2, and the gradient of each of 100 images
// is 3.
float updated(Loaded& loaded, kj::StringPtr key, uint64_t round) {
  auto& updater = loaded.updater;
  rpc::Slice slice{.key = 0, .offset = 0, .size = 1, .shard = 0};
  while (loaded.facts.graph.keys[slice.key].name != key) slice.key++;
  auto state = kj::heapArray<float>(updater.stateArrays(slice));
  for (float& value: state) value = 0;
  float gradient[] = {300}, current[] = {2}, next[] = {7};
  updater.update(slice, {round, gradient}, current, next, state);
  return next[0];
}

TEST_CASE(
    "StoreUpdater: the first group that matches a key gives its factors, optimizer and schedule") {
  auto loaded = grouped(
      "[{ keys = [\"fc1_weight\"], learning_rate_factor = 2, decay_factor = 4 }, "
      "{ keys = [\"fc1_*\", \"fc2_b*s\"], optimizer = { kind = \"sgd\", "
      "learning_rate = 0.125 }, schedule = { kind = \"constant\" } }]");
  CHECK(updated(loaded, "fc1_weight", 0) == 2 - 2 * 0.5f * (3 + 4 * 0.25f * 2));
  CHECK(updated(loaded, "fc1_bias", 0) == 2 - 0.125f * 3);
  CHECK(updated(loaded, "fc2_bias", 0) == 2 - 0.125f * 3);
  CHECK(updated(loaded, "fc2_weight", 0) == 2 - 0.5f * (3 + 0.25f * 2));
  // In the middle of the run, the common schedule is half over.
  CHECK(updated(loaded, "fc1_bias", 900) == 2 - 0.125f * 3);
  CHECK(updated(loaded, "fc1_weight", 900) == 2 - 0.5f * 2 * 0.5f * (3 + 4 * 0.25f * 2));
  CHECK(updated(loaded, "fc2_weight", 900) == 2 - 0.5f * 0.5f * (3 + 0.25f * 2));
}

TEST_CASE("StoreUpdater: a frozen key keeps its bits and has no state") {
  auto loaded = grouped("[{ keys = [\"fc1_weight\"], learning_rate_factor = 0 }]");
  CHECK(updated(loaded, "fc1_weight", 0) == 2);
  CHECK(updated(loaded, "fc1_weight", 1799) == 2);
  CHECK(updated(loaded, "fc1_bias", 0) < 2);
  auto& updater = loaded.updater;
  CHECK(loaded.facts.graph.keys[0].name == "fc1_weight");
  CHECK(updater.stateArrays({.key = 0, .offset = 0, .size = 1, .shard = 0}) == 0);
  CHECK(updater.stateArrays({.key = 1, .offset = 0, .size = 1, .shard = 0}) == 1);
}

TEST_CASE(
    "StoreUpdater: trains a key for its group's epochs, with which the group's schedule ends") {
  auto common = grouped("[{ keys = [\"fc1_bias\"], epochs = 1.5 }]");
  // The common schedule is for the whole run, of which half is over.
  CHECK(updated(common, "fc1_bias", 899) < 2 - 0.5f * 0.5f * 3);
  CHECK(updated(common, "fc1_bias", 900) == 2);
  CHECK(updated(common, "fc1_bias", 1799) == 2);
  CHECK(updated(common, "fc1_weight", 1799) < 2);
  auto own = grouped("[{ keys = [\"fc1_bias\"], epochs = 1.5, schedule = { kind = \"poly\" } }]");
  CHECK(updated(own, "fc1_bias", 450) == 2 - 0.5f * 0.5f * (3 + 0.25f * 2));
  CHECK(updated(own, "fc1_bias", 900) == 2);
}

TEST_CASE("StoreUpdater: a key stays whole if its optimizer needs that, unless the key is frozen") {
  auto loaded = grouped(
      "[{ keys = [\"fc2_weight\"], learning_rate_factor = 0, optimizer = { kind = "
      "\"lars\" } }, { keys = [\"*_weight\"], optimizer = { kind = \"muon\" } }, "
      "{ keys = [\"fc2_bias\"], optimizer = { kind = \"lars\" } }]");
  for (auto& key: storeKeys(loaded.experiment, loaded.facts.graph)) {
    CAPTURE(key.name.cStr());
    bool whole =
        key.name != "fc2_weight" && (key.name.endsWith("_weight") || key.name == "fc2_bias");
    CHECK(key.splittable == !whole);
  }
}

TEST_CASE("StoreUpdater: the lookahead draws back all but frozen keys, and ends with slow values") {
  kj::StringPtr overrides[] = {"train.steps=3", "train.lookahead={ every = 2, decay = 0.5 }",
      "train.optimizer={ kind = \"sgd\", learning_rate = 1, momentum = 0, weight_decay = 0 }",
      "train.groups=[{ keys = [\"fc1_weight\"], learning_rate_factor = 0 }]"};
  Loaded made(overrides);
  auto& updater = made.updater;
  rpc::Slice frozen{.key = 0, .offset = 0, .size = 1, .shard = 0};
  CHECK(updater.stateArrays(frozen) == 0);
  rpc::Slice slice{.key = 1, .offset = 0, .size = 1, .shard = 0};
  REQUIRE(updater.stateArrays(slice) == 1);
  // The value is 8 initially, and 5 after one update. The second update gives 2, and the lookahead
  // goes halfway back to 8. The third ends with the slow value, 5.
  float gradient[] = {300}, values[4] = {8}, state[1] = {0};
  for (uint64_t round = 0; round < 3; round++) {
    updater.update(slice, {round, gradient}, kj::arrayPtr(&values[round], 1),
        kj::arrayPtr(&values[round + 1], 1), state);
  }
  CHECK(values[1] == 5);
  CHECK(values[2] == 5);
  CHECK(values[3] == 5);
  float same[1] = {7};
  updater.update(frozen, {1, gradient}, kj::arrayPtr(&values[0], 1), same, nullptr);
  CHECK(same[0] == 8);
}

// An experiment of 10 epochs with the given number of workers. With two, an epoch has 300 updates.
// With three, which continue after epoch 2, it has 200.
Loaded resized(kj::StringPtr workers, kj::StringPtr schedule, kj::StringPtr more) {
  kj::StringPtr overrides[] = {
      "kvstore.mode=dist_sync", "cluster.servers=1", workers, "train.epochs=10", schedule, more};
  return Loaded(overrides);
}
constexpr kj::StringPtr CONTINUED =
    "continued={ epoch = 2, step = 600, records = 120000, updates = 600 }"_kj;

TEST_CASE("StoreUpdater: with another number of workers, schedules continue from the same epoch") {
  auto drops = "train.schedule={ kind = \"step\", epochs = [1, 3, 5], factor = 0.5 }"_kj;
  auto two = resized("cluster.workers=2", drops, "train.seed=1");
  auto three = resized("cluster.workers=3", drops, CONTINUED);
  CHECK(two.updater.learningRate(599) == three.updater.learningRate(600));
  // The count of updates continues: epoch 3 ends with update 799.
  double rate = three.updater.learningRate(600);
  CHECK(three.updater.learningRate(799) == rate);
  CHECK(three.updater.learningRate(800) == rate / 2);
  CHECK(three.updater.learningRate(1199) == rate / 2);
  CHECK(three.updater.learningRate(1200) == rate / 4);

  auto curve = "train.schedule={ kind = \"cosine\" }"_kj;
  auto before = resized("cluster.workers=2", curve, "train.seed=1");
  auto after = resized("cluster.workers=3", curve, CONTINUED);
  CHECK(before.updater.learningRate(600) == after.updater.learningRate(600));
  CHECK(before.updater.learningRate(2400) == after.updater.learningRate(600 + 6 * 200));
  CHECK(after.updater.runLength().updates == 2000);
}

TEST_CASE("ModelFacts: counts steps on after the number of workers has changed") {
  auto drops = "train.schedule={ kind = \"constant\" }"_kj;
  auto three = resized("cluster.workers=3", drops, CONTINUED);
  CHECK(three.facts.steps(three.experiment) == 600 + 8 * 200);
  CHECK(three.facts.stepsUntilEndOf(2, three.experiment) == 600);
  CHECK(three.facts.stepsUntilEndOf(3, three.experiment) == 800);
  CHECK(three.facts.epochs(three.experiment) == 10);
}

TEST_CASE("ModelFacts: the length of a pass of whole batches depends on the number of workers") {
  // Two workers of batch 128 have made 2 · 234 steps. An epoch of three has 156 steps.
  auto three = resized("cluster.workers=3",
      "continued={ epoch = 2, step = 468, records = 119808, updates = 468 }"_kj,
      "data={ batch_size = 128, last_batch = \"discard\" }");
  CHECK(three.facts.passLength == 156 * 3 * 128);
  CHECK(three.facts.stepsUntilEndOf(2, three.experiment) == 468);
  CHECK(three.facts.stepsUntilEndOf(3, three.experiment) == 468 + 156);
  CHECK(three.facts.steps(three.experiment) == 468 + 8 * 156);
  // Its first step reads the first records of the third pass.
  auto places = kj::heapArray<uint64_t>(128);
  divisionOf(three.experiment, three.facts.passLength).places(468, 0, places);
  CHECK(places[0] == 2 * three.facts.passLength);
}

TEST_CASE("ModelFacts: train.steps counts all updates, also those with fewer workers") {
  kj::StringPtr sync[] = {"kvstore.mode=dist_sync", "cluster.servers=1", "cluster.workers=3",
      "train.epochs=100", "train.steps=1500", CONTINUED};
  Loaded synchronous(sync);
  CHECK(synchronous.facts.steps(synchronous.experiment) == 1500);
  // Two workers have made 1200 updates, and three share the other 1200.
  kj::StringPtr async[] = {"kvstore.mode=dist_async", "cluster.servers=1", "cluster.workers=3",
      "train.epochs=100", "train.steps=2400",
      "continued={ epoch = 2, step = 600, records = 120000, updates = 1200 }"};
  Loaded asynchronous(async);
  CHECK(asynchronous.facts.steps(asynchronous.experiment) == 600 + 400);
}

}  // namespace
}  // namespace runner

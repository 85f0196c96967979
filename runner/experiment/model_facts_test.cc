#include "runner/experiment/model_facts.h"

#include <doctest/doctest.h>

namespace runner {
namespace {

// Facts of the quick start (60,000 records, 2 workers of batch 64) under some settings.
struct Course {
  uint64_t steps;
  uint epochs;
  uint64_t lastEpochSteps;

  explicit Course(kj::ArrayPtr<const kj::StringPtr> overrides) {
    auto loaded = loadExperiment("configs/fashion_mnist_dist_sync.toml", overrides);
    REQUIRE(loaded.errors == "");
    auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
    ModelFacts facts(experiment);
    steps = facts.steps(experiment);
    epochs = facts.epochs(experiment);
    lastEpochSteps = facts.stepsUntilEndOf(epochs, experiment) -
                     (epochs == 1 ? 0 : facts.stepsUntilEndOf(epochs - 1, experiment));
  }
};

TEST_CASE("ModelFacts: a limit in epochs gives the steps of whole epochs") {
  Course course({"train.epochs=5"});
  CHECK(course.steps == 5 * 60000 / 128);
  CHECK(course.epochs == 5);
}

TEST_CASE("ModelFacts: the earlier limit of steps and epochs ends the run") {
  Course steps({"train.epochs=5", "train.steps=1000"});
  CHECK(steps.steps == 1000);
  CHECK(steps.epochs == 3);
  CHECK(steps.lastEpochSteps == 1000 - 2 * 60000 / 128);
  Course epochs({"train.epochs=1", "train.steps=1000"});
  CHECK(epochs.steps == 60000 / 128);
  CHECK(epochs.epochs == 1);
}

TEST_CASE("ModelFacts: many steps have as many epochs as they need") {
  Course course({"train.epochs=1000000", "train.steps=100000000"});
  // 60,000 / 128 is 468.75, so 4 epochs have 1875 steps.
  CHECK(course.epochs == 213334);
  CHECK(course.lastEpochSteps == 157);
}

TEST_CASE("ModelFacts: a run that ends with an epoch has no empty epoch after it") {
  Course course({"train.steps=468"});
  CHECK(course.steps == 468);
  CHECK(course.epochs == 1);
}

TEST_CASE("ModelFacts: if all batches are whole, all epochs have the same number of steps") {
  // 60,000 / 128 is 468.75.
  Course discard({"train.epochs=4", "data.last_batch=discard"});
  CHECK(discard.steps == 4 * 468);
  CHECK(discard.lastEpochSteps == 468);
  Course pad({"train.epochs=4", "data.last_batch=pad"});
  CHECK(pad.steps == 4 * 469);
  CHECK(pad.lastEpochSteps == 469);
  // With two workers that each read all records: 60,000 / 64 is 937.5.
  Course whole({"train.epochs=4", "data.last_batch=pad", "data.part=whole"});
  CHECK(whole.steps == 4 * 938);
}

TEST_CASE("ModelFacts: if every push is an update, workers share the steps, rounded up") {
  Course course({"train.steps=1001", "kvstore.mode=dist_async"});
  CHECK(course.steps == 501);
}

}  // namespace
}  // namespace runner

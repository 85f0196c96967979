#include "runner/roles/training_state.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <math.h>

#include "runner/system/reason.h"
#include "tests/text.h"

namespace runner {
namespace {

kj::String failureOf(kj::Function<void()> call) {
  return reasonOf(KJ_ASSERT_NONNULL(kj::runCatchingExceptions(call)));
}

TEST_CASE("TrainingState: adds batches, and shows the sums to the io thread") {
  TrainingState state;
  state.epoch = 2;
  state.step = 7;
  state.add({.lossSum = 1.5, .correct = 3, .images = 4});
  state.add({.lossSum = 0.25, .correct = 1, .images = 4});
  LiveProgress progress;
  state.show(progress);
  CHECK(progress.epoch == 2);
  CHECK(progress.step == 7);
  CHECK(progress.lossSum == 1.75);
  CHECK(progress.correct == 4);
  CHECK(progress.images == 8);
}

TEST_CASE("TrainingState: a loss that is not finite ends the run, and changes no sums") {
  TrainingState state;
  state.epoch = 1;
  state.step = 1;
  CHECK(failureOf([&]() { state.add({.lossSum = NAN, .images = 4}, true); }) ==
        "the loss is nan at step 1 (epoch 1), before the first update of this worker: check the "
        "scale of the images (data.augment.scale, mean and deviation) and model.init");
  CHECK(failureOf([&]() { state.replaceSums({.lossSum = INFINITY, .images = 4}); }) ==
        "the loss is inf at step 1 (epoch 1): training diverged; lower "
        "train.optimizer.learning_rate");
  CHECK(state.sums.images == 0);
}

}  // namespace
}  // namespace runner

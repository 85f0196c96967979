#include "runner/experiment/run_length.h"

#include "io/batches/stream.h"

namespace runner {

namespace {

// Returns where the run stood when --resume changed its number of workers. Returns zeros if that
// never happened.
Continued startOf(const Experiment& experiment) {
  KJ_IF_MAYBE(continued, experiment.continued) return *continued;
  return {};
}

uint stepsPerUpdate(const Experiment& experiment) {
  return experiment.kvstore.mode->stepsPerUpdate(experiment.cluster.workers);
}

double updatesPerEpoch(const Experiment& experiment, uint64_t passLength) {
  uint64_t imagesPerUpdate = uint64_t(experiment.data.batchSize) * stepsPerUpdate(experiment);
  return double(passLength) * experiment.data.readings(experiment.cluster.workers) /
         imagesPerUpdate;
}

// Returns how many of `steps` steps are left after the run's number of workers has changed.
uint64_t stepsLeft(uint64_t steps, const Continued& start) {
  return steps - kj::min(steps, start.step);
}

// Returns how many updates a run with the present number of workers makes in `epochs` epochs.
uint64_t placeAfter(uint64_t epochs, const Experiment& experiment, uint64_t passLength) {
  if (epochs == 0) return 0;
  return nn::RunLength{updatesPerEpoch(experiment, passLength), 1}.updatesIn(epochs);
}

}  // namespace

bool wasDividedOtherwise(const Experiment& experiment) {
  return experiment.continued != nullptr && experiment.data.part == io::TrainingPart::SPLIT;
}

io::Division divisionOf(const Experiment& experiment, uint64_t passLength,
    kj::ArrayPtr<const io::MemberChange> changes) {
  auto start = startOf(experiment).start();
  // Earlier passes had other lengths if another number of workers divided them into whole steps.
  if (experiment.data.lastBatch != io::LastBatch::ROLL_OVER) {
    start.records = start.epoch * passLength;
  }
  return io::Division(
      passLength, experiment.data.batchSize, experiment.cluster.workers, changes, start);
}

uint64_t stepsIn(uint epochs, const Experiment& experiment, uint64_t passLength,
    kj::Maybe<const io::Division&> division) {
  KJ_IF_MAYBE(changed, division) return changed->stepsUntilEndOf(epochs);
  if (wasDividedOtherwise(experiment)) {
    return divisionOf(experiment, passLength).stepsUntilEndOf(epochs);
  }
  return io::Stream::stepsUntilEndOf(
      epochs, experiment.data, passLength, experiment.cluster.workers);
}

uint64_t stepsOf(
    const Experiment& experiment, uint64_t passLength, kj::Maybe<const io::Division&> division) {
  uint workers = experiment.cluster.workers;
  uint64_t result = kj::maxValue;
  KJ_IF_MAYBE(epochs, experiment.train.epochs) {
    result = stepsIn(*epochs, experiment, passLength, division);
  }
  KJ_IF_MAYBE(updates, experiment.train.steps) {
    auto start = startOf(experiment);
    uint64_t left = *updates - kj::min(start.updates, *updates);
    uint64_t steps = left * stepsPerUpdate(experiment);
    result = kj::min(result, start.step + (steps + workers - 1) / workers);
  }
  return result;
}

nn::RunLength runLengthOf(const Experiment& experiment, uint64_t passLength) {
  auto start = startOf(experiment);
  uint64_t before = placeAfter(start.epoch, experiment, passLength);
  uint64_t steps = stepsLeft(stepsOf(experiment, passLength), start);
  uint64_t updates = steps * experiment.cluster.workers / stepsPerUpdate(experiment);
  return {.updatesPerEpoch = updatesPerEpoch(experiment, passLength),
      .updates = kj::max(1u, before + updates),
      .ahead = int64_t(before - start.updates)};
}

nn::RunLength ownLengthOf(
    const Experiment& experiment, uint64_t passLength, kj::Maybe<const io::Division&> division) {
  auto start = startOf(experiment);
  uint64_t before = io::Stream::stepsUntilEndOf(
      start.epoch, experiment.data, passLength, experiment.cluster.workers);
  uint64_t steps = stepsLeft(stepsOf(experiment, passLength, division), start);
  return {.updatesPerEpoch = 0, .updates = before + steps, .ahead = int64_t(before - start.step)};
}

uint64_t updatesUntilEndOf(uint64_t epoch, const Experiment& experiment, uint64_t passLength) {
  return placeAfter(epoch, experiment, passLength) -
         uint64_t(runLengthOf(experiment, passLength).ahead);
}

}  // namespace runner

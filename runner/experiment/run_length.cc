#include "runner/experiment/run_length.h"

#include "io/batches/stream.h"

namespace runner {

uint64_t stepsIn(uint epochs, const Experiment& experiment, uint64_t trainingRecords,
    kj::Maybe<const io::Division&> division) {
  KJ_IF_MAYBE(changed, division) return changed->stepsUntilEndOf(epochs);
  return io::Stream::stepsUntilEndOf(
      epochs, experiment.data, trainingRecords, experiment.cluster.workers);
}

uint64_t stepsOf(const Experiment& experiment, uint64_t trainingRecords,
    kj::Maybe<const io::Division&> division) {
  uint workers = experiment.cluster.workers;
  uint64_t result = kj::maxValue;
  KJ_IF_MAYBE(epochs, experiment.train.epochs) {
    result = stepsIn(*epochs, experiment, trainingRecords, division);
  }
  KJ_IF_MAYBE(updates, experiment.train.steps) {
    uint64_t steps = *updates * experiment.kvstore.mode->stepsPerUpdate(workers);
    result = kj::min(result, (steps + workers - 1) / workers);
  }
  return result;
}

nn::RunLength runLengthOf(const Experiment& experiment, uint64_t trainingRecords) {
  uint workers = experiment.cluster.workers;
  uint stepsPerUpdate = experiment.kvstore.mode->stepsPerUpdate(workers);
  uint64_t imagesPerUpdate = uint64_t(experiment.data.batchSize) * stepsPerUpdate;
  uint64_t steps = stepsOf(experiment, trainingRecords) * workers;
  return {.updatesPerEpoch =
              double(trainingRecords) * experiment.data.readings(workers) / imagesPerUpdate,
      .updates = kj::max(1u, steps / stepsPerUpdate)};
}

}  // namespace runner

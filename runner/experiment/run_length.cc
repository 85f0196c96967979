#include "runner/experiment/run_length.h"

#include "io/batches/stream.h"

namespace runner {

uint64_t stepsIn(uint epochs, const Experiment& experiment, uint64_t trainingRecords) {
  return io::Stream::stepsUntilEndOf(
      epochs, experiment.data, trainingRecords, experiment.cluster.workers);
}

uint64_t stepsOf(const Experiment& experiment, uint64_t trainingRecords) {
  uint workers = experiment.cluster.workers;
  uint64_t result = kj::maxValue;
  KJ_IF_MAYBE(epochs, experiment.train.epochs) {
    result = stepsIn(*epochs, experiment, trainingRecords);
  }
  KJ_IF_MAYBE(updates, experiment.train.steps) {
    uint64_t pushes = *updates * experiment.rounds().pushesPerUpdate();
    result = kj::min(result, (pushes + workers - 1) / workers);
  }
  return result;
}

nn::RunLength runLengthOf(const Experiment& experiment, uint64_t trainingRecords) {
  uint workers = experiment.cluster.workers;
  uint pushesPerUpdate = experiment.rounds().pushesPerUpdate();
  uint64_t imagesPerUpdate = uint64_t(experiment.data.batchSize) * pushesPerUpdate;
  uint64_t pushes = stepsOf(experiment, trainingRecords) * workers;
  return {.updatesPerEpoch =
              double(trainingRecords) * experiment.data.readings(workers) / imagesPerUpdate,
      .updates = kj::max(1u, pushes / pushesPerUpdate)};
}

}  // namespace runner

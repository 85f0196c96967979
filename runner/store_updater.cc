#include "runner/store_updater.h"

namespace runner {

namespace {

// Updates of each parameter: rounds, to which every worker adds a push each step.
nn::RunLength runLengthOf(
    const Experiment& experiment, const ModelFacts& facts, uint64_t imagesPerRound) {
  uint workers = experiment.cluster.workers;
  uint64_t pushes = facts.steps(experiment) * workers;
  return {.updatesPerEpoch =
              double(facts.trainingRecords) * experiment.data.readings(workers) / imagesPerRound,
      .updates = kj::max(1u, pushes / rpc::pushesPerRound(*experiment.kvstore.mode, workers))};
}

}  // namespace

StoreUpdater::StoreUpdater(const Experiment& experiment, const ModelFacts& facts)
    : train(experiment.train),
      graph(facts.graph),
      imagesPerRound(uint64_t(experiment.data.batchSize) *
                     rpc::pushesPerRound(*experiment.kvstore.mode, experiment.cluster.workers)),
      rescale(1.0f / (train.loss->word == LossReduction::MEAN
                             ? imagesPerRound
                             : imagesPerRound / experiment.data.batchSize)),
      run(runLengthOf(experiment, facts, imagesPerRound)) {}

uint StoreUpdater::stateArrays() const {
  return train.optimizer->stateArrays();
}

void StoreUpdater::update(const rpc::Slice& slice, uint64_t round,
    kj::ArrayPtr<const float> gradientSum, kj::ArrayPtr<const float> current,
    kj::ArrayPtr<float> next, kj::ArrayPtr<float> state) {
  auto& key = graph.keys[slice.key];
  auto& optimizer = *train.optimizer;
  optimizer.apply({
      .gradient = gradientSum,
      .rescale = rescale,
      .current = current,
      .next = next,
      .state = state,
      .learningRate = learningRate(round) * key.learningRateFactor,
      .decay = optimizer.weightDecay() * key.decayFactor,
      .number = round,
  });
}

double StoreUpdater::learningRate(uint64_t round) const {
  return train.optimizer->learningRate() * train.schedule->factor(round, run);
}

}  // namespace runner

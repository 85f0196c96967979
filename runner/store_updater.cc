#include "runner/store_updater.h"

namespace runner {

StoreUpdater::StoreUpdater(
    const Experiment& experiment, const nn::Graph& graph, uint64_t trainingRecords)
    : train(experiment.train),
      graph(graph),
      imagesPerRound(uint64_t(experiment.data.batchSize) *
                     rpc::pushesPerRound(*experiment.kvstore.mode, experiment.cluster.workers)),
      rescale(1.0f / (train.loss->word == LossReduction::MEAN
                             ? imagesPerRound
                             : imagesPerRound / experiment.data.batchSize)),
      updatesPerEpoch(double(trainingRecords) *
                      experiment.data.readings(experiment.cluster.workers) / imagesPerRound) {}

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
  return train.optimizer->learningRate() * train.schedule->factor(round, updatesPerEpoch);
}

}  // namespace runner

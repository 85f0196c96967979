#include "runner/store_updater.h"

namespace runner {

StoreUpdater::StoreUpdater(
    const Experiment& experiment, const nn::Graph& graph, uint64_t trainingRecords)
    : train(experiment.train),
      graph(graph),
      imagesPerRound(uint64_t(experiment.data.batchSize) *
                     rpc::pushesPerRound(*experiment.kvstore.mode, experiment.cluster.workers)),
      updatesPerEpoch(double(trainingRecords) / imagesPerRound) {}

uint StoreUpdater::stateArrays() const {
  return train.optimizer->stateArrays();
}

void StoreUpdater::update(const rpc::Slice& slice, uint64_t round,
    kj::ArrayPtr<const float> gradientSum, kj::ArrayPtr<const float> current,
    kj::ArrayPtr<float> next, kj::ArrayPtr<float> state) {
  auto& key = graph.keys[slice.key];
  auto& optimizer = *train.optimizer;
  double factor = train.schedule->factor(round, updatesPerEpoch);
  optimizer.apply({
      .gradient = gradientSum,
      .rescale = 1.0f / imagesPerRound,
      .current = current,
      .next = next,
      .state = state,
      .learningRate = optimizer.learningRate() * factor * key.learningRateFactor,
      .decay = optimizer.weightDecay() * key.decayFactor,
  });
}

}  // namespace runner

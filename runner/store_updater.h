// runner/store_updater.h: puts optimizer, schedule and key factors under a shard.
#pragma once

#include "nn/graph.h"
#include "rpc/updater.h"
#include "runner/experiment.h"
#include "runner/model_facts.h"

namespace runner {

// What a shard of this experiment does when a round is full: one update of the optimizer, with the
// schedule's learning rate for that round, the key's factors, and the gradient divided by the
// images of the round (for a summed loss: by its pushes). Immutable; any thread.
class StoreUpdater final: public rpc::Updater {
public:
  // `facts` tell the schedule how many updates an epoch and the run have. All arguments must
  // outlive it.
  StoreUpdater(const Experiment& experiment, const ModelFacts& facts);

  uint stateArrays() const override;
  void update(const rpc::Slice& slice, uint64_t round, kj::ArrayPtr<const float> gradientSum,
      kj::ArrayPtr<const float> current, kj::ArrayPtr<float> next,
      kj::ArrayPtr<float> state) override;

  // Of update number `round` (from 0), before the keys' factors.
  double learningRate(uint64_t round) const;

private:
  const TrainConfig& train;
  const nn::Graph& graph;
  const uint64_t imagesPerRound;
  const float rescale;
  const nn::RunLength run;
};

}  // namespace runner

// runner/roles/store_updater.h: updates a shard's parameters with optimizer, schedule and the
// factors of the keys.
#pragma once

#include "nn/network/graph.h"
#include "nn/optimizer/value_rules.h"
#include "rpc/rounds.h"
#include "runner/experiment/experiment.h"
#include "runner/experiment/model_facts.h"

namespace runner {

// Makes the updates of this experiment's shards. When a round is full, the rule of the slice's key
// makes one update with the gradient divided by the images of the round (or, for a summed loss, by
// its pushes). A key that is not trained in this round keeps its bits. The lookahead comes last. It
// also affects keys whose epochs of training are over. Immutable. For any thread.
class StoreUpdater final: public rpc::Updater {
public:
  // `facts` tell the schedule how many updates an epoch and the run have. All arguments must
  // outlive this object.
  StoreUpdater(const Experiment& experiment, const ModelFacts& facts);

  uint stateArrays(const rpc::Slice& slice) const override;
  void update(const rpc::Slice& slice, const rpc::Round& round, kj::ArrayPtr<const float> current,
      kj::ArrayPtr<float> next, kj::ArrayPtr<float> state) override;

  // Returns the rate of update number `round` (from 0), for keys without a group, before their
  // factors.
  double learningRate(uint64_t round) const;
  // Returns the length of the run in updates of each parameter.
  const nn::RunLength& runLength() const { return run; }
  // Returns the same updates as rules for single values, for a worker that exchanges nothing. Null
  // if the worker exchanges gradients or values, or if an optimizer needs whole keys.
  kj::Maybe<nn::ValueRules> byValue() const;
  // Returns the number by which a push's sum is divided before the optimizer uses it. 1 for a
  // summed loss.
  uint64_t imagesOfPush() const { return imagesPerPush; }

private:
  // Makes the optimizer's part of update().
  void apply(const nn::KeyRule& rule, uint keyIndex, const rpc::Round& round,
      kj::ArrayPtr<const float> current, kj::ArrayPtr<float> next, kj::ArrayPtr<float> state) const;

  const TrainConfig& train;
  const bool exchanges;  // whether gradients or values go to other roles
  const nn::Graph& graph;
  const kj::Array<nn::KeyRule> rules;  // of each of the graph's keys
  const uint64_t imagesPerPush;        // 1 where the loss is a sum
  const nn::RunLength run;
};

// Returns a sentence on where the parameters of this experiment are updated. `itself`: a worker's
// program updates them itself (nn::Trainer).
kj::String placeOfUpdates(const Experiment& experiment, bool itself);

// Returns the updater that this experiment's mode makes from a StoreUpdater. For the shards of one
// thread. The arguments must outlive the updater.
kj::Own<rpc::Updater> shardUpdater(const Experiment& experiment, const ModelFacts& facts);

}  // namespace runner

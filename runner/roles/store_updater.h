// runner/roles/store_updater.h: puts optimizer, schedule and key factors under a shard.
#pragma once

#include "nn/network/graph.h"
#include "nn/optimizer/value_rules.h"
#include "rpc/rounds.h"
#include "runner/experiment/experiment.h"
#include "runner/experiment/model_facts.h"

namespace runner {

// What a shard of this experiment does when a round is full: one update by the rule of the slice's
// key, with the gradient divided by the images of the round (for a summed loss: by its pushes). A
// key that the rule does not train in this round keeps its bits. After all, the lookahead, which
// still draws back a key whose epochs are over. Immutable; any thread.
class StoreUpdater final: public rpc::Updater {
public:
  // `facts` tell the schedule how many updates an epoch and the run have. All arguments must
  // outlive it.
  StoreUpdater(const Experiment& experiment, const ModelFacts& facts);

  uint stateArrays(const rpc::Slice& slice) const override;
  void update(const rpc::Slice& slice, const rpc::Round& round, kj::ArrayPtr<const float> current,
      kj::ArrayPtr<float> next, kj::ArrayPtr<float> state) override;

  // Of update number `round` (from 0) of keys without a group, before their factors.
  double learningRate(uint64_t round) const;
  // In updates of each parameter.
  const nn::RunLength& runLength() const { return run; }
  // The same, of a worker that exchanges nothing, value by value; null if there is none, or if an
  // optimizer needs whole keys.
  kj::Maybe<nn::ValueRules> byValue() const;
  // What a push's sum is divided by to be what the optimizer takes: 1 for a summed loss.
  uint64_t imagesOfPush() const { return imagesPerPush; }

private:
  // The optimizer's part of update().
  void apply(const nn::KeyRule& rule, uint keyIndex, const rpc::Round& round,
      kj::ArrayPtr<const float> current, kj::ArrayPtr<float> next, kj::ArrayPtr<float> state) const;

  const TrainConfig& train;
  const bool exchanges;  // gradients or values, with other roles
  const nn::Graph& graph;
  const kj::Array<nn::KeyRule> rules;  // of each of the graph's keys
  const uint64_t imagesPerPush;        // 1 where the loss is a sum
  const nn::RunLength run;
};

// A sentence on where the parameters of this experiment are updated; `itself`: by a worker's
// program (nn::Trainer).
kj::String placeOfUpdates(const Experiment& experiment, bool itself);

// What the shards of this experiment call: what the mode makes of a StoreUpdater. For the shards of
// one thread; the arguments must outlive it.
kj::Own<rpc::Updater> shardUpdater(const Experiment& experiment, const ModelFacts& facts);

}  // namespace runner

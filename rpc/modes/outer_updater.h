// rpc/modes/outer_updater.h: the updates that shards make after workers have trained by themselves.
#pragma once

#include "rpc/rounds.h"

namespace rpc {

// How the shards of local_sgd continue from the mean of all workers' values.
struct OuterConfig {
  // The rules of OuterUpdater.
  enum Rule { AVERAGE, BLOCK_MOMENTUM, NESTEROV } rule;
  double learningRate;
  kj::Maybe<double> momentum;  // null: 1 - 1 / workers

  double momentumOf(uint workers) const { return momentum.orDefault(1 - 1.0 / workers); }
};

// The outer optimizer of local_sgd. A round's sum is the sum of the workers' differences old - new.
// Its mean g is therefore w minus the mean of the workers' new values, and plays the role of a
// gradient:
//   average: w ← w - g
//   block momentum: v ← momentum · v - rate · g;  w ← w + v
//     (Chen and Huo 2016, BMUF with classical block momentum: v is their Δ, rate their ζ)
//   nesterov: v ← momentum · v + g;  w ← w - rate · (g + momentum · v)
//     (Douillard et al. 2023, arXiv 2311.08105, algorithm 1, with PyTorch's SGD)
// All keys are treated alike, because a key that no worker trains has differences of 0. Immutable;
// any thread.
class OuterUpdater final: public Updater {
public:
  OuterUpdater(const OuterConfig& config, uint workers);

  uint stateArrays(const Slice& slice) const override;
  void update(const Slice& slice, const Round& round, kj::ArrayPtr<const float> current,
      kj::ArrayPtr<float> next, kj::ArrayPtr<float> state) override;

private:
  const OuterConfig::Rule rule;
  const float learningRate;
  const float momentum;
  const bool hasState;
};

}  // namespace rpc

#include "runner/store_updater.h"

#include "nn/floats.h"
#include "runner/run_length.h"

namespace runner {

StoreUpdater::StoreUpdater(const Experiment& experiment, const ModelFacts& facts)
    : train(experiment.train),
      graph(facts.graph),
      rules(KJ_MAP(key, facts.graph.keys) { return experiment.train.rules.of(key); }),
      imagesPerRound(uint64_t(experiment.data.batchSize) *
                     rpc::pushesPerRound(*experiment.kvstore.mode, experiment.cluster.workers)),
      rescale(1.0f / (train.loss->word == LossReduction::MEAN
                             ? imagesPerRound
                             : imagesPerRound / experiment.data.batchSize)),
      run(runLengthOf(experiment, facts.trainingRecords)) {}

uint StoreUpdater::stateArrays(const rpc::Slice& slice) const {
  auto& rule = rules[slice.key];
  if (rule.isFrozen()) return 0;
  return rule.optimizer->stateArrays() + (train.rules.lookahead == nullptr ? 0 : 1);
}

void StoreUpdater::update(const rpc::Slice& slice, uint64_t round,
    kj::ArrayPtr<const float> gradientSum, kj::ArrayPtr<const float> current,
    kj::ArrayPtr<float> next, kj::ArrayPtr<float> state) {
  auto& rule = rules[slice.key];
  size_t own = rule.isFrozen() ? 0 : rule.optimizer->stateArrays() * current.size();
  if (rule.trainsIn(round, run)) {
    apply(rule, slice.key, round, gradientSum, current, next, state.slice(0, own));
  } else {
    nn::copy(current, next);
  }
  KJ_IF_MAYBE(lookahead, train.rules.lookahead) {
    if (rule.isFrozen()) return;
    auto slow = state.slice(own, state.size());
    if (round == 0) nn::copy(current, slow);
    lookahead->apply(round, run, next, slow);
  }
}

void StoreUpdater::apply(const nn::KeyRule& rule, uint keyIndex, uint64_t round,
    kj::ArrayPtr<const float> gradientSum, kj::ArrayPtr<const float> current,
    kj::ArrayPtr<float> next, kj::ArrayPtr<float> state) const {
  auto& key = graph.keys[keyIndex];
  rule.optimizer->apply({
      .gradient = gradientSum,
      .rescale = rescale,
      .current = current,
      .next = next,
      .state = state,
      .learningRate = rule.learningRate(round, run),
      .decay = rule.decay(),
      .number = round,
      .role = key.role,
      .rows = key.rows,
      .cols = key.cols,
  });
}

double StoreUpdater::learningRate(uint64_t round) const {
  return train.rules.optimizer->learningRate() * train.rules.schedule->factor(round, run);
}

}  // namespace runner

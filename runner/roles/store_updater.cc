#include "runner/roles/store_updater.h"

#include "nn/loops/floats.h"
#include "runner/experiment/run_length.h"

namespace runner {

StoreUpdater::StoreUpdater(const Experiment& experiment, const ModelFacts& facts)
    : train(experiment.train),
      exchanges(experiment.kvstore.exchanges()),
      graph(facts.graph),
      rules(KJ_MAP(key, facts.graph.keys) { return experiment.train.rules.of(key); }),
      imagesPerPush(
          train.loss->word == LossReduction::MEAN ? uint64_t(experiment.data.batchSize) : 1),
      run(runLengthOf(experiment, facts.passLength)) {}

uint StoreUpdater::stateArrays(const rpc::Slice& slice) const {
  auto& rule = rules[slice.key];
  if (rule.isFrozen()) return 0;
  return rule.optimizer->stateArrays() + (train.rules.lookahead == nullptr ? 0 : 1);
}

void StoreUpdater::update(const rpc::Slice& slice, const rpc::Round& round,
    kj::ArrayPtr<const float> current, kj::ArrayPtr<float> next, kj::ArrayPtr<float> state) {
  auto& rule = rules[slice.key];
  size_t own = rule.isFrozen() ? 0 : rule.optimizer->stateArrays() * current.size();
  uint64_t place = run.placeOf(round.number);
  if (rule.trainsIn(place, run)) {
    apply(rule, slice.key, round, current, next, state.slice(0, own));
  } else {
    nn::copy(current, next);
  }
  KJ_IF_MAYBE(lookahead, train.rules.lookahead) {
    if (rule.isFrozen()) return;
    auto slow = state.slice(own, state.size());
    if (round.number == 0) nn::copy(current, slow);
    lookahead->apply(place, run, next, slow);
  }
}

void StoreUpdater::apply(const nn::KeyRule& rule, uint keyIndex, const rpc::Round& round,
    kj::ArrayPtr<const float> current, kj::ArrayPtr<float> next, kj::ArrayPtr<float> state) const {
  auto& key = graph.keys[keyIndex];
  // Zhang et al. 2016, equation 6.
  uint64_t staleness = kj::max(1u, round.staleness);
  rule.optimizer->apply({
      .gradient = round.gradientSum,
      .rescale = 1.0f / (imagesPerPush * round.divisor),
      .current = current,
      .next = next,
      .state = state,
      .learningRate = rule.learningRate(run.placeOf(round.number), run) / staleness,
      .decay = rule.decay(),
      .number = round.number,
      .role = key.role,
      .rows = key.rows,
      .cols = key.cols,
  });
}

double StoreUpdater::learningRate(uint64_t round) const {
  auto& rules = train.rules;
  return rules.optimizer->learningRate() * rules.schedule->factor(run.placeOf(round), run);
}

kj::Maybe<nn::ValueRules> StoreUpdater::byValue() const {
  if (exchanges) return nullptr;
  return nn::ValueRules::of(train.rules, graph.keys, run, 1.0f / imagesPerPush);
}

kj::String placeOfUpdates(const Experiment& experiment, bool itself) {
  auto& kvstore = experiment.kvstore;
  if (itself) {
    return kj::str(experiment.cluster.devices[0], " updates the parameters, which stay there");
  }
  if (!kvstore.exchanges()) return kj::str("the worker's host updates the parameters");
  KJ_IF_MAYBE(own, kvstore.mode->ownUpdates()) return kj::str(own->where);
  return kj::str(kvstore.hasServers() ? "the servers update" : "the workers' hosts update",
      " the parameters, each its share");
}

kj::Own<rpc::Updater> shardUpdater(const Experiment& experiment, const ModelFacts& facts) {
  auto optimizer = kj::heap<StoreUpdater>(experiment, facts);
  auto imagesPerPush = optimizer->imagesOfPush();
  return experiment.kvstore.mode->newShardUpdater(
      kj::mv(optimizer), imagesPerPush, experiment.cluster.workers);
}

}  // namespace runner

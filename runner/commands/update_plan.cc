#include "runner/commands/update_plan.h"

#include <kj/vector.h>

#include "runner/roles/store_updater.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

// Keys with the same update rule.
struct Alike {
  size_t group;  // the number of groups, for keys in none
  nn::KeyRule rule;
  kj::StringPtr first;
  uint keys;

  bool takes(size_t g, const nn::KeyRule& other) const {
    return group == g && rule.learningRateFactor == other.learningRateFactor &&
           rule.decayFactor == other.decayFactor;
  }
};

// Returns the rows in the order of their groups, then of their keys.
kj::Vector<Alike> alike(const nn::UpdateRules& rules, kj::ArrayPtr<const nn::Key> keys) {
  kj::Vector<Alike> all;
  for (size_t g = 0; g <= rules.groups.size(); ++g) {
    for (auto& key: keys) {
      if (rules.groupOf(key).orDefault(rules.groups.size()) != g) continue;
      auto rule = rules.of(key);
      bool known = false;
      for (auto& each: all) {
        if (!each.takes(g, rule)) continue;
        each.keys++;
        known = true;
      }
      if (!known) all.add(Alike{g, rule, key.name, 1});
    }
  }
  return all;
}

kj::String product(double value, double factor) {
  return factor == 1 ? sixDigits(value) : kj::str(sixDigits(value), " × ", sixDigits(factor));
}

kj::String untilText(const nn::KeyRule& rule, const nn::RunLength& run) {
  if (rule.isFrozen()) return kj::str("never updated");
  KJ_IF_MAYBE(epochs, rule.epochs) {
    if (run.updatesIn(*epochs) < run.updates) {
      return kj::str("epoch ", *epochs, ", update ", run.updatesIn(*epochs));
    }
  }
  return kj::str("the end");
}

}  // namespace

TextTable updatePlan(const Experiment& experiment, const ModelFacts& facts) {
  auto& rules = experiment.train.rules;
  StoreUpdater updater(experiment, facts);
  auto& run = updater.runLength();
  kj::Vector<kj::Array<kj::String>> rows;
  for (auto& each: alike(rules, facts.graph.keys)) {
    auto& rule = each.rule;
    auto own = rule.scheduleRun(run);
    auto name = each.group == rules.groups.size()
                    ? kj::str(rules.groups.size() == 0 ? "all" : "the rest")
                    : kj::strArray(rules.groups[each.group].patterns, ", ");
    uint64_t warmUp = rule.schedule->warmUp(own);
    rows.add(kj::arr(kj::mv(name), kj::str(each.keys), kj::str(each.first),
        kj::str(rule.optimizer->name()),
        product(rule.optimizer->learningRate(), rule.learningRateFactor),
        product(rule.optimizer->weightDecay(), rule.decayFactor), untilText(rule, run),
        kj::str(own.updates), warmUp == 0 ? kj::str() : kj::str(warmUp)));
  }
  auto header = kj::arr(kj::str("group"), kj::str("keys"), kj::str("first"), kj::str("rule"),
      kj::str("learning rate"), kj::str("decay"), kj::str("until"), kj::str("schedule over"),
      kj::str("warm-up"));
  return {kj::mv(header), rows.releaseAsArray(), nullptr};
}

kj::Array<kj::String> endlessWarmUps(const Experiment& experiment, const ModelFacts& facts) {
  StoreUpdater updater(experiment, facts);
  kj::Vector<kj::String> sentences;
  for (auto& each: alike(experiment.train.rules, facts.graph.keys)) {
    auto own = each.rule.scheduleRun(updater.runLength());
    uint64_t warmUp = each.rule.schedule->warmUp(own);
    if (each.rule.isFrozen() || warmUp <= own.updates) continue;
    auto sentence =
        kj::str("the warm-up takes ", warmUp, " updates, but the run has only ", own.updates);
    bool known = false;
    for (auto& other: sentences) known = known || other == sentence;
    if (!known) sentences.add(kj::mv(sentence));
  }
  return sentences.releaseAsArray();
}

}  // namespace runner

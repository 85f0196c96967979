#include "nn/optimizer/value_rules.h"

#include <kj/debug.h>

namespace nn {
namespace {

bool isSame(const KeyRule& a, const KeyRule& b) {
  return a.optimizer == b.optimizer && a.schedule == b.schedule &&
         a.learningRateFactor == b.learningRateFactor && a.decayFactor == b.decayFactor &&
         a.epochs == b.epochs && a.ownSchedule == b.ownSchedule;
}

}  // namespace

kj::Maybe<ValueRules> ValueRules::of(
    const UpdateRules& rules, kj::ArrayPtr<const Key> keys, const RunLength& run, float rescale) {
  ValueRules all(rules, run, rescale);
  for (auto& key: keys) {
    auto rule = rules.of(key);
    if (rule.isFrozen()) continue;
    KJ_IF_MAYBE(told, rule.optimizer->valueRule({})) {
      all.states_ = kj::max(all.states_, told->states);
    } else {
      return nullptr;
    }
    uint number = all.numberOf(rule);
    Range range{key.offset, key.offset + key.size};
    bool goesOn = all.pieces_.size() > 0 && all.pieces_.back().rule == number &&
                  all.pieces_.back().range.end == range.begin;
    if (goesOn) {
      all.pieces_.back().range.end = range.end;
    } else {
      all.pieces_.add(Piece{range, number});
    }
  }
  return kj::mv(all);
}

uint ValueRules::numberOf(const KeyRule& rule) {
  for (auto i: kj::indices(rules_)) {
    if (isSame(rules_[i], rule)) return i + 1;
  }
  rules_.add(rule);
  return rules_.size();
}

void ValueRules::tell(uint64_t number, kj::ArrayPtr<ValueRule> to) const {
  KJ_REQUIRE(to.size() == rules(), to.size(), rules());
  kj::Maybe<float> slowStep;
  KJ_IF_MAYBE(lookahead, common->lookahead) slowStep = lookahead->stepAfter(number, run);
  auto behind = [&](ValueRule rule) {
    rule.isFirst = number == 0;
    rule.looksBack = slowStep != nullptr;
    rule.slowStep = slowStep.orDefault(0);
    return rule;
  };
  to[OF_STATISTICS] = behind({});
  for (auto i: kj::indices(rules_)) {
    auto& rule = rules_[i];
    ValueRule own;
    if (rule.trainsIn(number, run)) {
      own = KJ_ASSERT_NONNULL(rule.optimizer->valueRule({.rescale = rescale,
          .learningRate = rule.learningRate(number, run),
          .decay = rule.decay(),
          .number = number}));
    }
    to[i + 1] = behind(own);
  }
}

}  // namespace nn

#include "nn/optimizer/value_updates.h"

#include <kj/debug.h>

namespace nn {
namespace {

bool isSame(const KeyRule& a, const KeyRule& b) {
  return a.optimizer == b.optimizer && a.schedule == b.schedule &&
         a.learningRateFactor == b.learningRateFactor && a.decayFactor == b.decayFactor &&
         a.epochs == b.epochs && a.ownSchedule == b.ownSchedule;
}

}  // namespace

kj::Maybe<ValueUpdates> ValueUpdates::of(
    const UpdateRules& rules, kj::ArrayPtr<const Key> keys, const RunLength& run, float rescale) {
  ValueUpdates all(rules, run, rescale);
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

uint ValueUpdates::numberOf(const KeyRule& rule) {
  for (auto i: kj::indices(rules_)) {
    if (isSame(rules_[i], rule)) return i + 1;
  }
  rules_.add(rule);
  return rules_.size();
}

void ValueUpdates::tell(uint64_t number, kj::ArrayPtr<ValueUpdate> to) const {
  KJ_REQUIRE(to.size() == rules(), to.size(), rules());
  ValueUpdate alone{.isFirst = number == 0};
  KJ_IF_MAYBE(lookahead, common->lookahead) {
    KJ_IF_MAYBE(step, lookahead->stepAfter(number, run)) {
      alone.looksBack = true;
      alone.slowStep = *step;
    }
  }
  to[OF_STATISTICS] = alone;
  for (auto i: kj::indices(rules_)) {
    auto& rule = rules_[i];
    auto& one = to[i + 1] = alone;
    if (!rule.trainsIn(number, run)) continue;
    one.rule = KJ_ASSERT_NONNULL(rule.optimizer->valueRule({.rescale = rescale,
        .learningRate = rule.learningRate(number, run),
        .decay = rule.decay(),
        .number = number}));
  }
}

}  // namespace nn

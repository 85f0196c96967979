// nn/optimizer/value_rules.h: the update rules of all parameters, value by value.
#pragma once

#include <kj/array.h>
#include <kj/vector.h>

#include "nn/optimizer/update_rules.h"
#include "nn/optimizer/value_rule.h"

namespace nn {

// The rules of a run for one worker that exchanges nothing, so that its device can update the
// parameters itself. They give the same results as the optimizers and the lookahead. Immutable; any
// thread.
class ValueRules {
public:
  // Values of the flat array that are updated by the same rule.
  struct Piece {
    Range range;
    uint rule;
  };
  // The index of the rule for moving statistics. Rules 1 and up are for parameters.
  static constexpr uint OF_STATISTICS = 0;

  // Makes the rules for the keys of a graph. `rescale` is the factor from a sum over the batch to
  // what optimizers take. Null if an optimizer needs whole keys. `rules` must outlive the result.
  static kj::Maybe<ValueRules> of(
      const UpdateRules& rules, kj::ArrayPtr<const Key> keys, const RunLength& run, float rescale);

  // Returns the pieces in their order, without values that never change.
  kj::ArrayPtr<const Piece> pieces() const { return pieces_; }
  // Returns how many rules there are, including that for moving statistics.
  uint rules() const { return rules_.size() + 1; }
  // Returns the largest number of states that any rule has.
  uint states() const { return states_; }
  // Whether there are slow values.
  bool looksBack() const { return common->lookahead != nullptr; }
  // Sets `to`, one entry per rule, to the rules of update number `number` (from 0).
  void tell(uint64_t number, kj::ArrayPtr<ValueRule> to) const;

private:
  ValueRules(const UpdateRules& rules, const RunLength& run, float rescale)
      : common(&rules), run(run), rescale(rescale) {}
  // Returns the index of the rule, and adds the rule if it is new.
  uint numberOf(const KeyRule& rule);

  const UpdateRules* common;
  RunLength run;
  float rescale;
  kj::Vector<KeyRule> rules_;
  kj::Vector<Piece> pieces_;
  uint states_ = 0;
};

}  // namespace nn

// nn/optimizer/value_rules.h: the updates of all parameters, told value by value.
#pragma once

#include <kj/array.h>
#include <kj/vector.h>

#include "nn/optimizer/update_rules.h"
#include "nn/optimizer/value_rule.h"

namespace nn {

// The updates of a run, for whoever can do them without a store: those of one worker that exchanges
// nothing. The same as the optimizers and the lookahead make. Immutable; any thread.
class ValueRules {
public:
  // Values of the flat array that are updated alike.
  struct Piece {
    Range range;
    uint rule;
  };
  // The updates that a ValueRule is told for: rules 1 and up are of parameters.
  static constexpr uint OF_STATISTICS = 0;

  // Of a graph's keys; `rescale` is what makes of a sum over the batch what optimizers take. Null
  // if an optimizer needs whole keys. `rules` must outlive it.
  static kj::Maybe<ValueRules> of(
      const UpdateRules& rules, kj::ArrayPtr<const Key> keys, const RunLength& run, float rescale);

  // In their order, without what never changes.
  kj::ArrayPtr<const Piece> pieces() const { return pieces_; }
  // How many rules there are, that of moving statistics included.
  uint rules() const { return rules_.size() + 1; }
  // The most of any rule.
  uint states() const { return states_; }
  // Whether there are slow values.
  bool looksBack() const { return common->lookahead != nullptr; }
  // Sets `to`, an entry a rule, to what update number `number` (from 0) does.
  void tell(uint64_t number, kj::ArrayPtr<ValueRule> to) const;

private:
  ValueRules(const UpdateRules& rules, const RunLength& run, float rescale)
      : common(&rules), run(run), rescale(rescale) {}
  // The number of the rule, which is added if it is new.
  uint numberOf(const KeyRule& rule);

  const UpdateRules* common;
  RunLength run;
  float rescale;
  kj::Vector<KeyRule> rules_;
  kj::Vector<Piece> pieces_;
  uint states_ = 0;
};

}  // namespace nn

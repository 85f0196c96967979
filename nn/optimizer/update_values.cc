#include "nn/optimizer/update_values.h"

#include "configs/language/each_instruction_set.h"

namespace nn {
namespace {

// With a kind and a number of states that the compiler knows, updated() has no branches, and the
// loop becomes vector code.
template <ValueRule::Kind KIND, uint32_t STATES, bool CENTERED = false>
[[gnu::always_inline]] inline void updateAll(ValueRule rule, const ValueArrays& arrays) {
  rule.kind = KIND;
  rule.isCentered = CENTERED;
  auto [size, gradient, current, to, state] = arrays;
  float* __restrict__ next = to;
  float* __restrict__ first = state;
  float* __restrict__ second = STATES > 1 ? state + size : nullptr;
  float* __restrict__ third = STATES > 2 ? state + 2 * size : nullptr;
  // Without `ivdep`, the compiler would need run-time checks that these arrays do not overlap. For
  // this many arrays it gives up.
#pragma GCC ivdep
  for (size_t i = 0; i < size; ++i) {
    float states[ValueRule::MOST_STATES] = {};
    if (STATES > 0) states[0] = first[i];
    if (STATES > 1) states[1] = second[i];
    if (STATES > 2) states[2] = third[i];
    next[i] = updated(rule, current[i], gradient[i], states);
    if (STATES > 0) first[i] = states[0];
    if (STATES > 1) second[i] = states[1];
    if (STATES > 2) third[i] = states[2];
  }
}

}  // namespace

EACH_INSTRUCTION_SET void updateValues(const ValueRule& rule, const ValueArrays& arrays) {
  switch (rule.kind) {
    case ValueRule::KEEP:
      break;
    case ValueRule::SGD:
      return updateAll<ValueRule::SGD, 0>(rule, arrays);
    case ValueRule::SGD_RATE_INSIDE:
      return updateAll<ValueRule::SGD_RATE_INSIDE, 1>(rule, arrays);
    case ValueRule::SGD_RATE_OUTSIDE:
      return updateAll<ValueRule::SGD_RATE_OUTSIDE, 1>(rule, arrays);
    case ValueRule::SGD_NESTEROV:
      return updateAll<ValueRule::SGD_NESTEROV, 1>(rule, arrays);
    case ValueRule::ADAM:
      return updateAll<ValueRule::ADAM, 2>(rule, arrays);
    case ValueRule::RMSPROP:
      return rule.isCentered ? updateAll<ValueRule::RMSPROP, 2, true>(rule, arrays)
                             : updateAll<ValueRule::RMSPROP, 1>(rule, arrays);
    case ValueRule::RMSPROP_WITH_MOMENTUM:
      return rule.isCentered ? updateAll<ValueRule::RMSPROP_WITH_MOMENTUM, 3, true>(rule, arrays)
                             : updateAll<ValueRule::RMSPROP_WITH_MOMENTUM, 2>(rule, arrays);
  }
}

}  // namespace nn

// nn/optimizer/value_rule.h: what one update does with one value, in numbers, for code that updates
// values on a device. No KJ here: compilers for devices read it.
#pragma once

#include <stdint.h>

namespace nn {

// The optimizer's rule, and then the lookahead's. A rule of zeros changes nothing. Let g = rescale
// · gradient + decay · w, and let every state begin as 0. The formulas are those of the loops
// (sgd_loop.h, adam_loop.h, rmsprop_loop.h), in their order, in float32.
struct ValueRule {
  enum Kind : uint32_t {
    KEEP,              // nothing changes, no state either
    SGD,               // w ← w - learningRate · g
    SGD_RATE_INSIDE,   // v ← momentum · v - learningRate · g;  w ← w + v
    SGD_RATE_OUTSIDE,  // v ← momentum · v + g;  w ← w - learningRate · v
    SGD_NESTEROV,      // v ← momentum · v + g;  w ← w - learningRate · (g + momentum · v)
    ADAM,              // see AdamLoop; epsilonOutside is its epsilon
    RMSPROP,           // d as in RmspropLoop;  w ← w - learningRate · d
    RMSPROP_WITH_MOMENTUM,  // v ← momentum · v + rateInside · d;  w ← w - learningRate · v
  };
  static constexpr uint32_t MOST_STATES = 3;

  Kind kind = KEEP;
  uint32_t states = 0;      // of a value, in the order of Optimizer's state arrays
  uint32_t isCentered = 0;  // RMSPROP…
  float rescale = 0;
  float decay = 0;
  float learningRate = 0;
  float momentum = 0;
  float rateInside = 0;
  float keptOfMean = 0;  // mean ← keptOfMean · mean + newOfMean · g
  float newOfMean = 0;
  float keptOfSquare = 0;  // square ← keptOfSquare · square + newOfSquare · g²
  float newOfSquare = 0;
  float epsilonBelowRoot = 0;
  float epsilonOutside = 0;
  float shrink = 0;      // ADAM
  uint32_t isFirst = 0;  // the update is the first: states hold nothing yet
  // Lookahead: slow ← slow + slowStep · (w - slow), or slow ← slow if slowStep is 0; w ← slow.
  uint32_t looksBack = 0;
  float slowStep = 0;
};

}  // namespace nn

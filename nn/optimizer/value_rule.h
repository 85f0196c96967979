// nn/optimizer/value_rule.h: the formulas of optimizers that update each value by itself. Compilers
// for devices read this file too: no KJ.
#pragma once

#include <math.h>
#include <stdint.h>

#include "nn/loops/host_device.h"

namespace nn {

// One update of a value, in numbers: the optimizer's rule, and then the lookahead's. A rule of
// zeros changes nothing. Every state begins as 0.
struct ValueRule {
  enum Kind : uint32_t {
    KEEP,  // changes neither the value nor its states
    SGD,
    SGD_RATE_INSIDE,   // the learning rate is a factor of what enters the momentum
    SGD_RATE_OUTSIDE,  // the learning rate is a factor of the momentum
    // The formula of torch's sgd.lua, of PyTorch's SGD, and of MXNet's NAG of 2015 and 2016.
    // MXNet's NAG of 2019 (1.5) has the rate inside, which is the same while the rate does not
    // change.
    SGD_NESTEROV,
    ADAM,
    RMSPROP,
    RMSPROP_WITH_MOMENTUM,
  };
  static constexpr uint32_t MOST_STATES = 3;

  Kind kind = KEEP;
  uint32_t states = 0;      // per value, in the order of Optimizer's state arrays
  uint32_t isCentered = 0;  // RMSPROP…
  float rescale = 0;
  float decay = 0;
  float learningRate = 0;  // ADAM: including both bias corrections
  float momentum = 0;
  float rateInside = 0;  // RMSPROP_WITH_MOMENTUM: factor of what enters the momentum
  // The shares of the moving means of g and g². The new shares are 1 - the kept ones, subtracted in
  // double: near 1 a float has too few digits.
  float keptOfMean = 0;
  float newOfMean = 0;
  float keptOfSquare = 0;
  float newOfSquare = 0;
  float epsilonBelowRoot = 0;
  float epsilonOutside = 0;
  float shrink = 0;      // ADAM: the share of a value that decoupled decay removes
  uint32_t isFirst = 0;  // on a device: the update is the first, states hold nothing yet
  // Lookahead: slow ← slow + slowStep · (w - slow), or slow ← slow if slowStep is 0; w ← slow.
  uint32_t looksBack = 0;
  float slowStep = 0;
};

// Returns the new value of w according to `rule`, and updates the states of w. The lookahead is not
// included. Every operation is in float32. On hosts each is rounded, so the bits do not depend on
// the instruction set. Devices may use fused multiply-adds, which round once.
[[gnu::always_inline]] HOST_DEVICE float updated(
    const ValueRule& rule, float w, float gradient, float (&states)[ValueRule::MOST_STATES]) {
  float g = rule.rescale * gradient + rule.decay * w;
  switch (rule.kind) {
    case ValueRule::KEEP:
      return w;
    case ValueRule::SGD:
      return w - rule.learningRate * g;
    case ValueRule::SGD_RATE_INSIDE:
      states[0] = rule.momentum * states[0] - rule.learningRate * g;
      return w + states[0];
    case ValueRule::SGD_RATE_OUTSIDE:
      states[0] = rule.momentum * states[0] + g;
      return w - rule.learningRate * states[0];
    case ValueRule::SGD_NESTEROV:
      states[0] = rule.momentum * states[0] + g;
      return w - rule.learningRate * (g + rule.momentum * states[0]);
    case ValueRule::ADAM: {
      float &mean = states[0], &square = states[1];
      mean = rule.keptOfMean * mean + rule.newOfMean * g;
      square = rule.keptOfSquare * square + rule.newOfSquare * (g * g);
      return (w - rule.shrink * w) -
             rule.learningRate * mean / (sqrtf(square) + rule.epsilonOutside);
    }
    case ValueRule::RMSPROP:
    case ValueRule::RMSPROP_WITH_MOMENTUM: {
      float &square = states[0], &mean = states[1];
      square = rule.keptOfSquare * square + rule.newOfSquare * (g * g);
      float below = square;
      if (rule.isCentered) {
        mean = rule.keptOfMean * mean + rule.newOfMean * g;
        // Rounding may take the variance below 0.
        float variance = square - mean * mean;
        below = variance > 0 ? variance : 0;
      }
      float slope = g / (sqrtf(below + rule.epsilonBelowRoot) + rule.epsilonOutside);
      if (rule.kind == ValueRule::RMSPROP) return w - rule.learningRate * slope;
      float& moving = rule.isCentered ? states[2] : states[1];
      moving = rule.momentum * moving + rule.rateInside * slope;
      return w - rule.learningRate * moving;
    }
  }
  return w;
}

}  // namespace nn

// nn/cuda/kernel_bodies_update.h: new parameters out of gradients.
#pragma once

#include <math.h>

#include "nn/cuda/kernels.h"

namespace nn::cuda {

// d of RmspropLoop; mean and square are moved.
HOST_DEVICE float rmspropSlope(const ValueRule& r, float g, float& square, float& mean) {
  square = r.keptOfSquare * square + r.newOfSquare * (g * g);
  float below = square;
  if (r.isCentered) {
    mean = r.keptOfMean * mean + r.newOfMean * g;
    float variance = square - mean * mean;
    below = variance > 0 ? variance : 0;
  }
  return g / (sqrtf(below + r.epsilonBelowRoot) + r.epsilonOutside);
}

// The new value; states are moved. The choice is made alike by all threads of a block.
HOST_DEVICE float updated(
    const ValueRule& r, float w, float gradient, float (&states)[ValueRule::MOST_STATES]) {
  float g = r.rescale * gradient + r.decay * w;
  float& v = states[0];
  switch (r.kind) {
    case ValueRule::KEEP:
      break;
    case ValueRule::SGD:
      return w - r.learningRate * g;
    case ValueRule::SGD_RATE_INSIDE:
      v = r.momentum * v - r.learningRate * g;
      return w + v;
    case ValueRule::SGD_RATE_OUTSIDE:
      v = r.momentum * v + g;
      return w - r.learningRate * v;
    case ValueRule::SGD_NESTEROV:
      v = r.momentum * v + g;
      return w - r.learningRate * (g + r.momentum * v);
    case ValueRule::ADAM: {
      auto& [mean, square, none] = states;
      mean = r.keptOfMean * mean + r.newOfMean * g;
      square = r.keptOfSquare * square + r.newOfSquare * (g * g);
      return (w - r.shrink * w) - r.learningRate * mean / (sqrtf(square) + r.epsilonOutside);
    }
    case ValueRule::RMSPROP:
      return w - r.learningRate * rmspropSlope(r, g, states[0], states[1]);
    case ValueRule::RMSPROP_WITH_MOMENTUM: {
      float slope = rmspropSlope(r, g, states[0], states[1]);
      float& moving = r.isCentered ? states[2] : states[1];
      moving = r.momentum * moving + r.rateInside * slope;
      return w - r.learningRate * moving;
    }
  }
  return w;
}

HOST_DEVICE void updateValue(const UpdateParameters& k, const ValueRule& rule, uint64_t i) {
  float w = k.values[i];
  if (rule.kind != ValueRule::KEEP) {
    float states[ValueRule::MOST_STATES] = {0, 0, 0};
    for (uint32_t s = 0; s < ValueRule::MOST_STATES; s++) {
      if (s < rule.states && !rule.isFirst) states[s] = k.states[s * k.stride + i];
    }
    w = updated(rule, w, k.gradients[i], states);
    for (uint32_t s = 0; s < ValueRule::MOST_STATES; s++) {
      if (s < rule.states) k.states[s * k.stride + i] = states[s];
    }
  }
  if (rule.looksBack) {
    float slow = k.slow[i];
    if (rule.slowStep != 0) slow = slow + rule.slowStep * (w - slow);
    w = k.slow[i] = slow;
  }
  k.values[i] = w;
}

constexpr uint32_t UPDATE_THREADS = 256;

inline Grid gridOf(const UpdateParameters& k, uint32_t) {
  return {k.count, UPDATE_THREADS};
}
template <typename T, unsigned N, typename Block>
HOST_DEVICE void body(const UpdateParameters& k, Block& block) {
  const UpdatePiece& piece = k.pieces[block.index()];
  const ValueRule& rule = k.rules[piece.rule];
  block.each([&](uint32_t thread) {
    if (rule.kind == ValueRule::KEEP && !rule.looksBack) return;
    for (uint32_t i = thread; i < piece.size; i += UPDATE_THREADS) {
      updateValue(k, rule, piece.begin + i);
    }
  });
}

}  // namespace nn::cuda

// nn/cuda/kernel_bodies_update.h: the kernel that updates parameters.
#pragma once

#include "nn/cuda/kernels.h"

namespace nn::cuda {

HOST_DEVICE void updateValue(const UpdateParameters& k, const ValueRule& rule, uint64_t i) {
  float w = k.values[i];
  if (rule.kind != ValueRule::KEEP) {
    float states[ValueRule::MOST_STATES] = {0, 0, 0};
    for (uint32_t s = 0; s < ValueRule::MOST_STATES; s++) {
      if (s < rule.states && !rule.isFirst) states[s] = k.states[s * k.stride + i];
    }
    // All threads of a block have the same rule, and take the same branches.
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

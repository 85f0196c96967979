#include "nn/optimizer/sgd_loop.h"

#include "nn/loops/each_instruction_set.h"

namespace nn {

EACH_INSTRUCTION_SET void sgdPlain(const SgdLoop& loop) {
  auto [size, gradient, current, next, state, rescale, learningRate, momentum, decay] = loop;
  float* __restrict__ out = next;
  for (size_t i = 0; i < size; ++i) {
    float g = rescale * gradient[i] + decay * current[i];
    out[i] = current[i] - learningRate * g;
  }
}

EACH_INSTRUCTION_SET void sgdRateInside(const SgdLoop& loop) {
  auto [size, gradient, current, next, state, rescale, learningRate, momentum, decay] = loop;
  float* __restrict__ out = next;
  float* __restrict__ moving = state;
  for (size_t i = 0; i < size; ++i) {
    float g = rescale * gradient[i] + decay * current[i];
    moving[i] = momentum * moving[i] - learningRate * g;
    out[i] = current[i] + moving[i];
  }
}

EACH_INSTRUCTION_SET void sgdRateOutside(const SgdLoop& loop) {
  auto [size, gradient, current, next, state, rescale, learningRate, momentum, decay] = loop;
  float* __restrict__ out = next;
  float* __restrict__ moving = state;
  for (size_t i = 0; i < size; ++i) {
    float g = rescale * gradient[i] + decay * current[i];
    moving[i] = momentum * moving[i] + g;
    out[i] = current[i] - learningRate * moving[i];
  }
}

EACH_INSTRUCTION_SET void sgdNesterov(const SgdLoop& loop) {
  auto [size, gradient, current, next, state, rescale, learningRate, momentum, decay] = loop;
  float* __restrict__ out = next;
  float* __restrict__ moving = state;
  for (size_t i = 0; i < size; ++i) {
    float g = rescale * gradient[i] + decay * current[i];
    moving[i] = momentum * moving[i] + g;
    out[i] = current[i] - learningRate * (g + momentum * moving[i]);
  }
}

}  // namespace nn

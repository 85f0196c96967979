#include "nn/optimizer/adam_loop.h"

#include <math.h>

#include "nn/loops/each_instruction_set.h"

namespace nn {

EACH_INSTRUCTION_SET void adam(const AdamLoop& loop) {
  auto [size, gradient, current, next, mean, square, rescale, learningRate, beta1, rest1, beta2,
      rest2, epsilon, decay, shrink] = loop;
  float* __restrict__ out = next;
  float* __restrict__ m = mean;
  float* __restrict__ v = square;
  for (size_t i = 0; i < size; ++i) {
    float g = rescale * gradient[i] + decay * current[i];
    m[i] = beta1 * m[i] + rest1 * g;
    v[i] = beta2 * v[i] + rest2 * (g * g);
    out[i] = (current[i] - shrink * current[i]) - learningRate * m[i] / (sqrtf(v[i]) + epsilon);
  }
}

}  // namespace nn

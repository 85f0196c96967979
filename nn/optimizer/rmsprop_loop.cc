#include "nn/optimizer/rmsprop_loop.h"

#include <math.h>

#include "nn/loops/each_instruction_set.h"

namespace nn {

EACH_INSTRUCTION_SET void rmspropPlain(const RmspropLoop& loop) {
  auto [size, gradient, current, next, square, mean, rescale, decay, smoothing, rest, below,
      outside] = loop;
  float* __restrict__ out = next;
  float* __restrict__ v = square;
  for (size_t i = 0; i < size; ++i) {
    float g = rescale * gradient[i] + decay * current[i];
    v[i] = smoothing * v[i] + rest * (g * g);
    out[i] = g / (sqrtf(v[i] + below) + outside);
  }
}

EACH_INSTRUCTION_SET void rmspropCentered(const RmspropLoop& loop) {
  auto [size, gradient, current, next, square, mean, rescale, decay, smoothing, rest, below,
      outside] = loop;
  float* __restrict__ out = next;
  float* __restrict__ v = square;
  float* __restrict__ m = mean;
  for (size_t i = 0; i < size; ++i) {
    float g = rescale * gradient[i] + decay * current[i];
    v[i] = smoothing * v[i] + rest * (g * g);
    m[i] = smoothing * m[i] + rest * g;
    float variance = v[i] - m[i] * m[i];
    variance = variance > 0 ? variance : 0;
    out[i] = g / (sqrtf(variance + below) + outside);
  }
}

EACH_INSTRUCTION_SET void step(size_t size, const float* current, float* next, float rate) {
  float* __restrict__ out = next;
  for (size_t i = 0; i < size; ++i) out[i] = current[i] - rate * out[i];
}

EACH_INSTRUCTION_SET void stepWithMomentum(size_t size, const float* current, float* next,
    float* moving, float momentum, float inside, float outside) {
  float* __restrict__ out = next;
  float* __restrict__ mom = moving;
  for (size_t i = 0; i < size; ++i) {
    mom[i] = momentum * mom[i] + inside * out[i];
    out[i] = current[i] - outside * mom[i];
  }
}

}  // namespace nn

// nn/cuda/functions.h: the activations of nn/network/ops.h, and their slopes, on packs.
#pragma once

#include <math.h>

#include "nn/cuda/kernels.h"

namespace nn::cuda {

// The probability that a normal number is below `x`.
HOST_DEVICE float normalBelow(float x) {
  return 0.5f * (1 + erff(x * 0.70710678f));
}

// values = f(values). The function is chosen once per pack. All threads choose the same one.
template <unsigned N>
HOST_DEVICE void activate(Function function, float (&values)[N]) {
  switch (function) {
    case Function::NONE:
      break;
    case Function::RELU:  // NaN stays NaN
      for (float& x: values) x = x < 0 ? 0 : x;
      break;
    case Function::TANH:
      for (float& x: values) x = tanhf(x);
      break;
    case Function::SIGMOID:
      for (float& x: values) x = 1 / (1 + expf(-x));
      break;
    case Function::ELU:
      for (float& x: values) x = x > 0 ? x : expm1f(x);
      break;
    case Function::GELU:
      for (float& x: values) x = x * normalBelow(x);
      break;
  }
}

// g *= f'(u). `from` is y = f(u), but for GELU it is u.
template <unsigned N>
HOST_DEVICE void timesSlope(Function function, const float (&from)[N], float (&g)[N]) {
  switch (function) {
    case Function::NONE:
      break;
    case Function::RELU:
      for (unsigned i = 0; i < N; i++) g[i] = from[i] > 0 ? g[i] : 0;
      break;
    case Function::TANH:
      for (unsigned i = 0; i < N; i++) g[i] *= 1 - from[i] * from[i];
      break;
    case Function::SIGMOID:
      for (unsigned i = 0; i < N; i++) g[i] *= from[i] * (1 - from[i]);
      break;
    case Function::ELU:
      for (unsigned i = 0; i < N; i++) g[i] = from[i] > 0 ? g[i] : g[i] * (from[i] + 1);
      break;
    case Function::GELU:
      for (unsigned i = 0; i < N; i++) {
        float x = from[i];
        g[i] *= normalBelow(x) + x * expf(-0.5f * x * x) * 0.39894228f;
      }
      break;
  }
}

}  // namespace nn::cuda

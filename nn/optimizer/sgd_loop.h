// nn/optimizer/sgd_loop.h: the loops of stochastic gradient descent, in the instruction set of the
// machine at hand.
#pragma once

#include <cstddef>

namespace nn {

// What one loop needs. All arrays have `size` floats; `next` and `state` overlap nothing else.
struct SgdLoop {
  size_t size;
  const float* gradient;
  const float* current;
  float* next;
  float* state;  // the momentum; unused by sgdPlain
  float rescale;
  float learningRate;
  float momentum;
  float decay;
};

// With g = rescale · gradient + decay · current, element by element in float32, every operation
// rounded, so that the bits do not depend on the instruction set:

// next ← current - learningRate · g
void sgdPlain(const SgdLoop& loop);
// state ← momentum · state - learningRate · g; next ← current + state
void sgdRateInside(const SgdLoop& loop);
// state ← momentum · state + g; next ← current - learningRate · state
void sgdRateOutside(const SgdLoop& loop);
// state ← momentum · state + g; next ← current - learningRate · (g + momentum · state)
//
// So torch's sgd.lua has it, and PyTorch's SGD and MXNet's NAG of 2015 and 2016 after it. MXNet's
// NAG of 2019 (1.5) has the rate inside; it is the same while the rate stays.
void sgdNesterov(const SgdLoop& loop);

}  // namespace nn

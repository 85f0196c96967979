// nn/optimizer/sgd_loop.h: the loops of stochastic gradient descent, in the instruction set of the
// machine at hand.
#pragma once

#include <cstddef>

namespace nn {

// The arguments of a loop. All arrays have `size` floats. `next` and `state` must overlap nothing
// else.
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

// Let g = rescale · gradient + decay · current. All loops work element by element in float32 and
// round every operation, so that the bits do not depend on the instruction set.

// next ← current - learningRate · g
void sgdPlain(const SgdLoop& loop);
// state ← momentum · state - learningRate · g; next ← current + state
void sgdRateInside(const SgdLoop& loop);
// state ← momentum · state + g; next ← current - learningRate · state
void sgdRateOutside(const SgdLoop& loop);
// state ← momentum · state + g; next ← current - learningRate · (g + momentum · state)
//
// This is the formula of torch's sgd.lua, of PyTorch's SGD, and of MXNet's NAG of 2015 and 2016.
// MXNet's NAG of 2019 (1.5) has the rate inside, which is the same while the rate does not change.
void sgdNesterov(const SgdLoop& loop);

}  // namespace nn

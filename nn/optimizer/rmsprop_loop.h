// nn/optimizer/rmsprop_loop.h: the loops of RMSprop, in the instruction set of the machine at hand.
#pragma once

#include <cstddef>

namespace nn {

// The arguments of the first loop. All arrays have `size` floats. `next`, `square` and `mean` must
// overlap nothing else.
struct RmspropLoop {
  size_t size;
  const float* gradient;
  const float* current;
  float* next;
  float* square;  // the moving mean of g²
  float* mean;    // that of g; unused by rmspropPlain
  float rescale;
  float decay;
  float smoothing;
  float rest;  // 1 - smoothing, subtracted in double: near 1 a float has too few digits
  float epsilonBelowRoot;
  float epsilonOutside;  // one of the two is 0
};

// Let g = rescale · gradient + decay · current. All loops work element by element in float32 and
// round every operation, so that the bits do not depend on the instruction set.

// square ← smoothing · square + rest · g²
// next ← g / (sqrt(square + epsilonBelowRoot) + epsilonOutside)
void rmspropPlain(const RmspropLoop& loop);
// Also does mean ← smoothing · mean + rest · g, and takes max(0, square - mean²) in place of square
// below the root, because rounding may take the difference below 0.
void rmspropCentered(const RmspropLoop& loop);

// The second loop, over what the first one left in `next`:

// next ← current - rate · next
void step(size_t size, const float* current, float* next, float rate);
// moving ← momentum · moving + inside · next; next ← current - outside · moving
void stepWithMomentum(size_t size, const float* current, float* next, float* moving, float momentum,
    float inside, float outside);

}  // namespace nn

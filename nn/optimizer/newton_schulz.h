// nn/optimizer/newton_schulz.h: the loops of Muon, in the instruction set of the machine at hand.
#pragma once

#include <cstddef>

namespace nn {

// The arguments of momentumStep(). All arrays have `size` floats. `next` and `state` must overlap
// nothing else.
struct MomentumStep {
  size_t size;
  const float* gradient;
  float* next;
  float* state;  // the momentum
  float rescale;
  float momentum;
  bool nesterov;
};

// Let g = rescale · gradient. In float32, with every operation rounded:
// state ← momentum · state + g; next ← nesterov ? g + momentum · state : state
void momentumStep(const MomentumStep& step);

// next ← current - shrink · current - rate · next
void shrinkAndStep(size_t size, const float* current, float* next, float shrink, float rate);

// A matrix, row by row, and three pieces of memory of its size. Nothing overlaps.
struct NewtonSchulz {
  size_t rows;
  size_t cols;
  unsigned steps;
  float* matrix;
  float* scratch[3];
};

// Brings the singular values of the matrix G near to 1: to 0.7 … 1.2 where they were not much
// smaller than the largest. With U S Vᵀ = G the result is near to U Vᵀ. Begins with
// X = G / (|G| + 1e-7). Each of the steps (Jordan 2024 uses five) is
//   A = X Xᵀ;  X ← a X + (b A + c A²) X
// with (a, b, c) = (3.4445, -4.7750, 2.0315). A matrix with more rows than columns is transposed
// before and after, so that A is the smaller one.
//
// In float32. Each sum is added in ascending order of its index, and every operation is rounded, so
// the bits do not depend on the instruction set. Uses no threads and no other memory.
void orthogonalize(const NewtonSchulz& work);

}  // namespace nn

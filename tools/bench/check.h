// tools/bench/check.h: compares a program's results with those of the reference implementation.
#pragma once

#include "nn/program.h"

namespace tools {

// The allowed distance of a result from the reference: the length of the difference, relative to
// the length of the reference.
struct CheckTolerance {
  double logits;
  kj::Maybe<double> gradient;  // null: not compared
};

// Returns the tolerance for results of deep networks.
CheckTolerance checkToleranceOf(nn::Precision precision);

// Both programs must have computed the same batch with the same weights. `program` may have more
// rows. Throws if logits of the reference's rows, or the gradient of an array, differ by more than
// the tolerance. For a gradient, the unit of the tolerance is the gradient's length, but at least a
// hundredth of the length of all gradients. (The gradient of a bias before a batch norm is only
// rounding noise.)
void requireSameLogits(
    nn::Program& program, nn::Program& reference, double tolerance, nn::Phase phase);
void requireSameGradients(
    const nn::Graph& graph, nn::Program& program, nn::Program& reference, double tolerance);

}  // namespace tools

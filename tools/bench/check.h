// tools/bench/check.h: a program's results beside those of the naive oracle.
#pragma once

#include "nn/program.h"

namespace tools {

// How far a result may be from the oracle's: the length of the difference, relative to the length
// of the oracle's.
struct CheckTolerance {
  double logits;
  kj::Maybe<double> gradient;  // null: not to be compared
};

// Through deep networks.
CheckTolerance checkToleranceOf(nn::Precision precision);

// Both programs have computed the same batch, with the same weights; `program` may have rows more.
// They throw if logits of the oracle's rows, or the gradient of an array, differ by more. An
// array whose gradient is short is measured by a hundredth of the whole: in front of a batch norm
// a bias has none but rounding noise.
void requireSameLogits(
    nn::Program& program, nn::Program& oracle, double tolerance, nn::Phase phase);
void requireSameGradients(
    const nn::Graph& graph, nn::Program& program, nn::Program& oracle, double tolerance);

}  // namespace tools

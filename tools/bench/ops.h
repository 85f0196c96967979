// tools/bench/ops.h: what the ops of a network take of a step, and what the machine could do.
#pragma once

#include "nn/profile.h"
#include "runner/text/text_table.h"
#include "tools/bench/peaks.h"

namespace tools {

using kj::uint;

// One op in one direction, or all of a kind; a step's sums.
struct OpCost {
  kj::String name;  // the node's, or how many there are
  kj::String kind;  // "conv2d 3×3", "max pool 2×2/2": with the stride if it is not 1
  nn::Profile::Direction direction;
  double seconds;  // the mean over lanes
  double flops;    // of convolutions and dense layers; 0 for ops that wait for memory
  // What cannot be less if nothing stays in a cache: each input, output, gradient and weight that
  // the op needs, touched once.
  double bytes;
};

// Whether a node's inputs depend on parameters: if not, its backward makes no gradient of them.
kj::Array<bool> inputsThatTrain(const nn::Graph& graph);

// The ops on which time was spent in `steps` steps of `images` images, in the graph's order. What
// is computed together is one op: an activation where a convolution's output lies is not here.
// `value_bytes`: of an element of an input, an output or their gradients; weights have four.
kj::Vector<OpCost> opCosts(const nn::Graph& graph, const nn::Profile& profile, uint images,
    uint steps, uint value_bytes = 4);

// Sums over ops of one kind and direction, the longest first.
kj::Vector<OpCost> byKind(kj::ArrayPtr<const OpCost> costs);

// Columns op, kind, direction, ms, share, GFLOP/s, GB/s, peak; the last rows are what `step_s`, a
// step's mean time, has beside the ops. `peak` is the share of the machine's rate of arithmetic
// (`fma`) or of copying memory (`copy`), whichever is larger.
runner::TextTable opTable(
    kj::ArrayPtr<const OpCost> costs, double step_s, double fma_flops, double copy_bytes);

}  // namespace tools

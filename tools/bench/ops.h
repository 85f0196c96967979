// tools/bench/ops.h: the distribution of a step's time over the ops of a network, compared with the
// machine's limits.
#pragma once

#include "nn/profile.h"
#include "runner/text/text_table.h"
#include "tools/bench/peaks.h"

namespace tools {

using kj::uint;

// One op in one direction, or the sum over one kind, for a step.
struct OpCost {
  kj::String name;  // the node's name, or how many ops there are
  kj::String kind;  // "conv2d 3×3", "max pool 2×2/2": with the stride if it is not 1
  nn::Profile::Direction direction;
  double seconds;  // the mean over lanes
  double flops;    // of convolutions and dense layers; 0 for ops that are limited by memory
  // The least bytes if nothing stays in a cache: each input, output, gradient and weight that the
  // op needs, touched once.
  double bytes;
};

// The floating-point operations of a node for one image. A backward pass counts as two forward
// passes, or as one if the node's inputs do not depend on parameters and need no gradient.
struct NodeFlops {
  double forward = 0;
  double backward = 0;
};

// Returns the operations of each node.
kj::Array<NodeFlops> flopsOf(const nn::Graph& graph);

// Returns the ops that took time in `steps` steps of `images` images, in the graph's order. Ops
// that are computed together are one op: an activation that overwrites a convolution's output is
// not in the list. `value_bytes` is the size of an element of an input, an output or their
// gradients. Weights have four bytes.
kj::Vector<OpCost> opCosts(const nn::Graph& graph, const nn::Profile& profile, uint images,
    uint steps, uint value_bytes = 4);

// Returns the sums over ops of one kind and direction, the longest first.
kj::Vector<OpCost> byKind(kj::ArrayPtr<const OpCost> costs);

// Returns the columns op, kind, direction, ms, share, GFLOP/s, GB/s and peak. The last rows are the
// rest of `step_s`, the mean time of a step. `peak` is the share of the machine's rate of
// arithmetic (`fma`) or of copying memory (`copy`), whichever is larger.
runner::TextTable opTable(
    kj::ArrayPtr<const OpCost> costs, double step_s, double fma_flops, double copy_bytes);

}  // namespace tools

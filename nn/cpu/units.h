// nn/cpu/units.h: the nodes of a graph as the cpu program runs them: fused, ordered, and put into
// phases.
#pragma once

#include <kj/array.h>
#include <kj/vector.h>

#include "nn/network/graph.h"
#include "nn/program.h"

namespace nn::cpu {

using UnitId = uint;

// One input of one unit.
struct Use {
  UnitId unit;
  uint input;  // index into its inputs
};

// A node together with the activation that is applied to its output where it lies: ReLU or GELU to
// a batch norm, any function but GELU (whose gradient needs its input) to what nobody else reads.
//
// A *phase* is a list of tasks that a lane works through chunk by chunk of its images; all lanes
// meet at its end. A phase ends where the whole batch is needed: at statistics of a batch norm,
// forward and backward. Forward phases count from 0, backward phases go on from there, segment by
// segment.
//
// In validation a batch norm right after a convolution is *folded* into it: no more than other
// weights and another bias. Others use the moving statistics, so no phase waits for the batch, and
// dropout is left out.
struct Unit {
  const Node* node;
  NodeId id;
  uint segment;
  kj::Maybe<const Node&> folded;  // the batch norm, of a convolution
  kj::Maybe<Activation::Function> activation;
  kj::Vector<UnitId> inputs;
  kj::Vector<Use> uses;

  // Its value is made from stored ones wherever it is needed, chunk by chunk in cache, forward and
  // backward, rather than stored: batch norms, GELUs and concats.
  bool recomputed = false;
  // The loss depends on it and it depends on parameters, its own or those of units before it: it
  // has a backward part, and so a gradient of its output.
  bool trains = false;
  // Its value stays floats, whatever others are: logits, and what is between them and the dense
  // layer they come from.
  bool staysFloats = false;
  // A convolution whose bias a batch norm right after it cancels. If another one between them was
  // folded into it, the bias is part of what came of that, and is added.
  bool biasIsInert = false;

  uint at = 0;          // the phase of its forward task
  uint ready = 0;       // the first phase that can use its value
  uint complete = 0;    // the backward phase after which the gradient of its value is whole
  uint backwardAt = 0;  // the phase of its backward tasks

  template <typename Kind>
  bool is() const {
    return node->op.is<Kind>();
  }
};

struct Units {
  kj::Array<Unit> all;              // in the order of the nodes
  kj::Array<Range> forwardPhases;   // of each segment
  kj::Array<Range> backwardPhases;  // of each segment; empty ranges in validation
};

Units lowerToUnits(const Graph& graph, Phase phase);

}  // namespace nn::cpu

// nn/units.h: the units that a backend computes: nodes of a graph that share a pass over memory.
// Says which units have a gradient, and whose values stay float32.
#pragma once

#include <kj/array.h>
#include <kj/vector.h>

#include "nn/network/graph.h"
#include "nn/program.h"

namespace nn {

using UnitId = uint;

// One input of one unit.
struct Use {
  UnitId unit;
  uint input;  // index into its inputs
};

// A node, together with later nodes that the backend applies to its output in the same pass: see
// Fusion. Validation leaves dropout out: readers of the dropout read its input instead.
struct Unit {
  const Node* node;
  NodeId nodeId;
  UnitId id;
  const Node* output;  // the last node that is part of the unit
  uint segment;
  kj::Vector<UnitId> inputs;
  kj::Vector<Use> uses;

  kj::Maybe<const Node&> folded;  // the batch norm that is folded into this convolution
  bool hasResidual = false;       // the second of `inputs` is added to the output
  // Applied to the output of the node. A max pool may apply the activation of the unit before it.
  kj::Maybe<Activation::Function> activation;

  // Whether the value of the unit has a gradient: the loss depends on the unit, and the unit
  // depends on parameters, its own or those of units before it.
  bool trains = false;
  // Whether the unit's value stays float32, regardless of other values. True for the logits, and
  // for everything between them and the dense layer that they come from.
  bool staysFloats = false;

  template <typename Kind>
  bool is() const {
    return node->op.is<Kind>();
  }
};

// The nodes that a backend can apply to a unit's output in the same pass, if nothing else reads
// that output.
struct Fusion {
  // Whether `unit`, which has no activation yet, takes this one.
  bool (*takesActivation)(const Unit& unit, Activation::Function function);
  // Whether validation folds a batch norm into the convolution before it, by changing the weights
  // and the bias of the convolution.
  bool foldsNorms = false;
  // Whether a batch norm can add the value of an earlier unit to its output. An Add of two inputs
  // then becomes part of the batch norm.
  bool addsResiduals = false;
};

// Returns the units of `graph` for training or for validation, in the order of their nodes. The
// graph must outlive the result.
kj::Array<Unit> unitsOf(const Graph& graph, Phase phase, const Fusion& fusion);

// The nodes that drop out, in their order.
kj::Array<NodeId> droppingNodes(const Graph& graph);

}  // namespace nn

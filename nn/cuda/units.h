// nn/cuda/units.h: the nodes of a graph as a GPU runs them: what is computed in one pass over
// memory.
#pragma once

#include <kj/array.h>
#include <kj/vector.h>

#include "nn/cuda/kernels.h"
#include "nn/network/graph.h"
#include "nn/program.h"

namespace nn::cuda {

using UnitId = uint;

// A node with what is applied to its output where it lies: to a batch norm the addition of another
// unit's value (a residual sum), then any activation; to a convolution or dense layer an activation
// other than GELU, whose gradient needs its input.
//
// In validation dropout is left out: its readers read its input.
struct Unit {
  const Node* node;
  NodeId id;           // of the node
  const Node* output;  // the last node that is part of it
  uint segment;
  kj::Vector<UnitId> inputs;
  bool hasResidual = false;  // the second of `inputs`
  Function function = Function::NONE;
  uint uses = 0;

  // The loss depends on it and it depends on parameters, its own or those of units before it: its
  // value has a gradient.
  bool trains = false;
  // Logits, and what is between them and the dense layer they come from: floats, whatever others
  // are.
  bool staysFloats = false;

  template <typename Kind>
  bool is() const {
    return node->op.is<Kind>();
  }
};

Function functionOf(const Activation& activation);

// In the order of the nodes.
kj::Array<Unit> lowerToUnits(const Graph& graph, Phase phase);

}  // namespace nn::cuda

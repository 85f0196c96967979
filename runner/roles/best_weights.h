// runner/roles/best_weights.h: the weights of the best epoch of a run so far.
#pragma once

#include "configs/language/state_visitor.h"
#include "nn/network/graph.h"
#include "nn/program.h"
#include "runner/checkpoints/saved_part.h"

namespace runner {

// Returns a file of weights for sendPart(). `values` are the parameters, then the statistics.
SavedPart weightsPart(const nn::Graph& graph, kj::StringPtr digest, kj::ArrayPtr<const Note> notes,
    kj::ArrayPtr<const float> values);

// The weights of the best epoch so far, at worker 0, which keeps them. Empty until keep() is
// called.
class BestWeights {
public:
  // `graph` must outlive it.
  explicit BestWeights(const nn::Graph& graph): graph(graph) {}

  bool isEmpty() const { return values == nullptr; }
  // Keeps the parameters and the moving statistics of `program`.
  void keep(nn::Program& program);
  void drop() { values = nullptr; }
  // The parameters, then the statistics. Must not be empty.
  kj::ArrayPtr<const float> flat() const { return values; }

  // Call it before visitState() restores. If the worker's part `part` of a checkpoint has best
  // weights, allocates memory, so that visitState() restores them. Otherwise this object stays
  // empty.
  void prepareFor(kj::ArrayPtr<const kj::byte> part);
  // Visits the weights, to save and to restore them, unless they are empty.
  void visitState(configs::StateVisitor& visitor);

private:
  void allocate();

  const nn::Graph& graph;
  kj::Array<float> values;  // the parameters, then the statistics
};

}  // namespace runner

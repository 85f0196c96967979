// runner/roles/best_weights.h: the weights of the best epoch of a run so far.
#pragma once

#include "configs/language/state_visitor.h"
#include "nn/network/graph.h"
#include "nn/program.h"
#include "runner/checkpoints/saved_part.h"
#include "runner/roles/best_epoch.h"

namespace runner {

// At the worker that keeps them. Empty until an epoch was kept.
class BestWeights {
public:
  // `graph` must outlive it.
  explicit BestWeights(const nn::Graph& graph): graph(graph) {}

  bool isEmpty() const { return values == nullptr; }
  // Keeps the parameters and the moving statistics of `program`.
  void keep(nn::Program& program);
  void drop() { values = nullptr; }
  // Returns the file of the weights, of the epoch `best`. Must not be empty. `notes`: see
  // notesOf().
  SavedPart file(kj::StringPtr digest, const BestEpoch& best, kj::ArrayPtr<const Note> notes) const;

  // Before visitState() restores them: whether `part` has any decides whether they are restored.
  void prepareFor(kj::ArrayPtr<const kj::byte> part);
  // Shows them, to save and to restore them, unless they are empty.
  void visitState(configs::StateVisitor& visitor);

private:
  void allocate();

  const nn::Graph& graph;
  kj::Array<float> values;  // the parameters, then the statistics
};

}  // namespace runner

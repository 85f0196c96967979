#include "runner/roles/best_weights.h"

#include <kj/vector.h>

#include "nn/loops/floats.h"
#include "runner/checkpoints/weights.h"

namespace runner {

namespace {

constexpr kj::StringPtr NAME = "best.weights"_kj;

}  // namespace

void BestWeights::allocate() {
  values = kj::heapArray<float>(graph.parameters + graph.statisticsSize);
}

void BestWeights::keep(nn::Program& program) {
  if (isEmpty()) allocate();
  nn::copy(program.parameters(), values.slice(0, graph.parameters));
  nn::copy(program.statistics(), values.slice(graph.parameters, values.size()));
}

SavedPart BestWeights::file(
    kj::StringPtr digest, const BestEpoch& best, kj::ArrayPtr<const Note> notes) const {
  kj::Vector<Note> all;
  all.add(Note{"epoch"_kj, kj::str(best.epoch)});
  all.add(Note{"validation_accuracy"_kj, kj::str(best.accuracy)});
  for (auto& note: notes) all.add(Note{note.name, kj::str(note.text)});
  return {weightsHead(graph, digest, all), kj::heapArray<kj::byte>(values.asPtr().asBytes())};
}

void BestWeights::prepareFor(kj::ArrayPtr<const kj::byte> part) {
  for (auto& tensor: tensorsIn(part)) {
    if (tensor.name == NAME) return allocate();
  }
}

void BestWeights::visitState(configs::StateVisitor& visitor) {
  if (!isEmpty()) visitor.floats(NAME, values);
}

}  // namespace runner

#include "runner/roles/best_weights.h"

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

SavedPart weightsPart(const nn::Graph& graph, kj::StringPtr digest, kj::ArrayPtr<const Note> notes,
    kj::ArrayPtr<const float> values) {
  return {weightsHead(graph, digest, notes), kj::heapArray<kj::byte>(values.asBytes())};
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

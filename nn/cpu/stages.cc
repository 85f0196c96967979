#include "nn/cpu/stages.h"

namespace nn::cpu {
namespace {

// A batch norm's output is not stored, so it takes only what its own kernels do.
bool takesActivation(const Unit& unit, Activation::Function function) {
  bool isGelu = function == Activation::GELU;
  if (unit.is<BatchNorm>()) return isGelu || function == Activation::RELU;
  if (isGelu) return false;
  return unit.is<Conv2d>() || unit.is<Dense>() || unit.is<Add>() || unit.is<Pool>();
}

constexpr Fusion FUSION = {.takesActivation = takesActivation, .foldsNorms = true};

void mark(kj::ArrayPtr<StagedUnit> units) {
  for (auto& unit: units) {
    bool isGelu =
        unit.is<Activation>() && unit.node->op.get<Activation>().function == Activation::GELU;
    unit.recomputed = unit.is<BatchNorm>() || isGelu || unit.is<Concat>();
    // Otherwise chains of batch norms over concats, or of concats, would be recomputed from their
    // beginning each time.
    if (unit.is<BatchNorm>() || isGelu) units[unit.inputs[0]].recomputed = false;
    if (unit.is<Concat>()) {
      for (UnitId input: unit.inputs) {
        if (units[input].is<Concat>()) units[input].recomputed = false;
      }
    }
    if (unit.is<BatchNorm>()) {
      auto& before = units[unit.inputs[0]];
      before.biasIsInert = before.is<Conv2d>() && before.node->op.get<Conv2d>().bias &&
                           before.folded == nullptr && before.activation == nullptr &&
                           before.uses.size() == 1;
    }
  }
}

void orderForward(Stages& stages, Phase phase) {
  uint first = 0, next = 0;
  for (UnitId u = 0; u < stages.units.size(); ++u) {
    auto& unit = stages.units[u];
    bool opens = u == 0 || unit.segment != stages.units[u - 1].segment;
    if (opens) first = next;
    unit.at = first;
    for (UnitId input: unit.inputs) unit.at = kj::max(unit.at, stages.units[input].ready);
    unit.ready = unit.at;
    if (unit.is<Input>()) {
      next = kj::max(next, first);
    } else if (unit.is<BatchNorm>() && phase == Phase::TRAIN) {
      // Its statistics take the whole batch.
      ++unit.ready;
      next = kj::max(next, unit.at + 1);
      if (!unit.recomputed) next = kj::max(next, unit.ready + 1);
    } else if (!unit.recomputed) {
      next = kj::max(next, unit.at + 1);
    }
    stages.forward[unit.segment] = {first, next};
  }
}

void orderBackward(Stages& stages) {
  uint next = stages.forward.back().end;
  UnitId u = stages.units.size();
  for (uint s = stages.backward.size(); s-- > 0;) {
    uint first = next;
    for (; u > 0 && stages.units[u - 1].segment == s; --u) {
      auto& unit = stages.units[u - 1];
      if (!unit.trains) continue;
      // Nothing reads the loss, and the forward pass has already computed its gradient.
      unit.complete = unit.uses.empty() ? first : 0;
      for (auto& use: unit.uses) {
        auto& user = stages.units[use.unit];
        if (user.trains) unit.complete = kj::max(unit.complete, user.backwardAt);
      }
      // The gradient of a batch norm's input takes sums over the whole batch first.
      unit.backwardAt = kj::max(first, unit.complete + (unit.is<BatchNorm>() ? 1 : 0));
      next = kj::max(next, unit.backwardAt + 1);
    }
    stages.backward[s] = {first, next};
  }
}

}  // namespace

Stages stagesOf(const Graph& graph, Phase phase) {
  Stages stages;
  stages.units = KJ_MAP(unit, unitsOf(graph, phase, FUSION)) {
    return StagedUnit{kj::mv(unit)};
  };
  stages.forward = kj::heapArray<Range>(graph.segments.size());
  stages.backward = kj::heapArray<Range>(graph.segments.size());
  mark(stages.units);
  orderForward(stages, phase);
  if (phase == Phase::TRAIN) orderBackward(stages);
  return stages;
}

}  // namespace nn::cpu

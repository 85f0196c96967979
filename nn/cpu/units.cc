#include "nn/cpu/units.h"

namespace nn::cpu {
namespace {

uint segmentOf(const Graph& graph, NodeId node) {
  for (uint s = 0; s < graph.segments.size(); ++s) {
    if (node < graph.segments[s].nodes.end) return s;
  }
  KJ_UNREACHABLE;
}

// Whether `function` can be applied to the unit's output in place, when nothing else reads it. A
// batch norm's output is not stored, so only what its own kernels do fits it.
bool takesActivation(const Unit& unit, Activation::Function function) {
  if (unit.activation != nullptr) return false;
  bool isGelu = function == Activation::GELU;
  if (unit.is<BatchNorm>()) return isGelu || function == Activation::RELU;
  if (isGelu) return false;
  return unit.is<Conv2d>() || unit.is<Dense>() || unit.is<Add>() || unit.is<Pool>();
}

// Whether `node` becomes a part of the unit before it, which it alone reads; if so it is one.
bool join(Unit& before, const Node& node, Phase phase) {
  if (node.op.is<Activation>()) {
    auto function = node.op.get<Activation>().function;
    if (!takesActivation(before, function)) return false;
    before.activation = function;
    return true;
  }
  bool isPlain = before.activation == nullptr && before.folded == nullptr;
  bool folds = phase == Phase::VALIDATE && node.op.is<BatchNorm>() && before.is<Conv2d>();
  if (!folds || !isPlain) return false;
  before.folded = node;
  return true;
}

kj::Array<Unit> fuse(const Graph& graph, Phase phase) {
  // What a node's reader reads: the node, but for dropout in validation what that reads.
  auto source = kj::heapArray<NodeId>(graph.nodes.size());
  auto readers = kj::heapArray<uint>(graph.nodes.size());
  auto isLeftOut = [&](const Node& node) {
    return phase == Phase::VALIDATE && node.op.is<Dropout>();
  };
  for (NodeId i = 0; i < graph.nodes.size(); ++i) {
    auto& node = graph.nodes[i];
    readers[i] = 0;
    source[i] = isLeftOut(node) ? source[node.inputs[0]] : i;
    if (isLeftOut(node)) continue;
    for (NodeId input: node.inputs) ++readers[source[input]];
  }

  kj::Vector<Unit> units;
  auto unitOf = kj::heapArray<UnitId>(graph.nodes.size());
  for (NodeId i = 0; i < graph.nodes.size(); ++i) {
    auto& node = graph.nodes[i];
    if (node.inputs.size() == 1) {
      UnitId before = unitOf[node.inputs[0]];
      bool isAlone = readers[source[node.inputs[0]]] == 1;
      if (isLeftOut(node) || (isAlone && join(units[before], node, phase))) {
        unitOf[i] = before;
        continue;
      }
    }
    unitOf[i] = units.size();
    Unit unit{.node = &node, .id = unitOf[i], .segment = segmentOf(graph, i)};
    for (NodeId input: node.inputs) {
      units[unitOf[input]].uses.add(Use{unitOf[i], uint(unit.inputs.size())});
      unit.inputs.add(unitOf[input]);
    }
    units.add(kj::mv(unit));
  }
  return units.releaseAsArray();
}

void mark(kj::ArrayPtr<Unit> units) {
  for (auto& unit: units) {
    bool isGelu =
        unit.is<Activation>() && unit.node->op.get<Activation>().function == Activation::GELU;
    unit.recomputed = unit.is<BatchNorm>() || isGelu || unit.is<Concat>();
    unit.trains = unit.node->keys.size() > 0;
    for (UnitId input: unit.inputs) unit.trains = unit.trains || units[input].trains;
    // Else chains of batch norms over concats would be recomputed from their beginning each time.
    if (unit.is<BatchNorm>() || isGelu) units[unit.inputs[0]].recomputed = false;
    if (unit.is<BatchNorm>()) {
      auto& before = units[unit.inputs[0]];
      before.biasIsInert = before.is<Conv2d>() && before.node->op.get<Conv2d>().bias &&
                           before.folded == nullptr && before.activation == nullptr &&
                           before.uses.size() == 1;
    }
  }
  // What the loss, the last unit, does not depend on does not train.
  auto needed = kj::heapArray<bool>(units.size());
  for (auto& each: needed) each = false;
  needed.back() = true;
  for (UnitId u = units.size(); u-- > 0;) {
    units[u].trains = units[u].trains && needed[u];
    for (UnitId input: units[u].inputs) needed[input] = needed[input] || needed[u];
  }
}

// From the loss back to a dense layer, over what works element by element.
void markLogits(kj::ArrayPtr<Unit> units) {
  auto passesOn = [](const Unit& unit) {
    return unit.is<Activation>() || unit.is<Scale>() || unit.is<Dropout>();
  };
  UnitId last = units.back().inputs[0], first = last;
  while (passesOn(units[first]) && units[first].uses.size() == 1) first = units[first].inputs[0];
  if (!units[first].is<Dense>() || units[first].uses.size() != 1) return;
  for (UnitId u = last; u != first; u = units[u].inputs[0]) units[u].staysFloats = true;
  units[first].staysFloats = true;
}

void orderForward(Units& units, Phase phase) {
  uint first = 0, next = 0;
  for (UnitId u = 0; u < units.all.size(); ++u) {
    auto& unit = units.all[u];
    bool opens = u == 0 || unit.segment != units.all[u - 1].segment;
    if (opens) first = next;
    unit.at = first;
    for (UnitId input: unit.inputs) unit.at = kj::max(unit.at, units.all[input].ready);
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
    units.forwardPhases[unit.segment] = {first, next};
  }
}

void orderBackward(Units& units) {
  uint next = units.forwardPhases.back().end;
  UnitId u = units.all.size();
  for (uint s = units.backwardPhases.size(); s-- > 0;) {
    uint first = next;
    for (; u > 0 && units.all[u - 1].segment == s; --u) {
      auto& unit = units.all[u - 1];
      if (!unit.trains) continue;
      // Nobody uses the loss: its gradient is there from the forward pass.
      unit.complete = unit.uses.empty() ? first : 0;
      for (auto& use: unit.uses) {
        auto& user = units.all[use.unit];
        if (user.trains) unit.complete = kj::max(unit.complete, user.backwardAt);
      }
      // The gradient of a batch norm's input takes sums over the whole batch first.
      unit.backwardAt = kj::max(first, unit.complete + (unit.is<BatchNorm>() ? 1 : 0));
      next = kj::max(next, unit.backwardAt + 1);
    }
    units.backwardPhases[s] = {first, next};
  }
}

}  // namespace

Units lowerToUnits(const Graph& graph, Phase phase) {
  Units units;
  units.all = fuse(graph, phase);
  units.forwardPhases = kj::heapArray<Range>(graph.segments.size());
  units.backwardPhases = kj::heapArray<Range>(graph.segments.size());
  mark(units.all);
  markLogits(units.all);
  orderForward(units, phase);
  if (phase == Phase::TRAIN) orderBackward(units);
  return units;
}

}  // namespace nn::cpu

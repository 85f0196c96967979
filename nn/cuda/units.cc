#include "nn/cuda/units.h"

namespace nn::cuda {
namespace {

uint segmentOf(const Graph& graph, NodeId node) {
  for (uint s = 0; s < graph.segments.size(); ++s) {
    if (node < graph.segments[s].nodes.end) return s;
  }
  KJ_UNREACHABLE;
}

class Fusion {
public:
  Fusion(const Graph& graph, Phase phase)
      : graph(graph),
        phase(phase),
        readers(kj::heapArray<uint>(graph.nodes.size())),
        unitOf(kj::heapArray<UnitId>(graph.nodes.size())) {
    countReaders();
  }

  kj::Array<Unit> run() {
    for (NodeId i = 0; i < graph.nodes.size(); ++i) {
      auto& node = graph.nodes[i];
      if (isLeftOut(node)) {
        unitOf[i] = unitOf[node.inputs[0]];
      } else if (!join(i)) {
        unitOf[i] = units.size();
        Unit unit{.node = &node, .id = i, .output = &node, .segment = segmentOf(graph, i)};
        for (NodeId input: node.inputs) addInput(unit, unitOf[input]);
        units.add(kj::mv(unit));
      }
    }
    return units.releaseAsArray();
  }

private:
  bool isLeftOut(const Node& node) const {
    return phase == Phase::VALIDATE && node.op.is<Dropout>();
  }

  void countReaders() {
    auto source = kj::heapArray<NodeId>(graph.nodes.size());
    for (NodeId i = 0; i < graph.nodes.size(); ++i) {
      auto& node = graph.nodes[i];
      readers[i] = 0;
      source[i] = isLeftOut(node) ? source[node.inputs[0]] : i;
      if (isLeftOut(node)) continue;
      for (NodeId input: node.inputs) ++readers[source[input]];
    }
  }

  void addInput(Unit& unit, UnitId input) {
    units[input].uses++;
    unit.inputs.add(input);
  }

  // The value of the unit before node `i` is read by nobody else.
  bool isAlone(UnitId before) const {
    auto& output = *units[before].output;
    return readers[&output - graph.nodes.begin()] == 1;
  }

  // Whether node `i` becomes part of a unit before it.
  bool join(NodeId i) {
    auto& node = graph.nodes[i];
    KJ_SWITCH_ONEOF(node.op) {
      KJ_CASE_ONEOF(activation, Activation) {
        UnitId before = unitOf[node.inputs[0]];
        auto& unit = units[before];
        bool isGelu = activation.function == Activation::GELU;
        bool takes = unit.is<BatchNorm>() || (!isGelu && (unit.is<Conv2d>() || unit.is<Dense>()));
        if (!takes || unit.function != Function::NONE || !isAlone(before)) return false;
        unit.function = functionOf(activation);
        return joinedAs(before, i);
      }
      KJ_CASE_ONEOF(add, Add) {
        if (node.inputs.size() != 2) return false;
        UnitId a = unitOf[node.inputs[0]], b = unitOf[node.inputs[1]];
        // The other one's value is there when the later one runs.
        UnitId before = kj::max(a, b), other = kj::min(a, b);
        auto& unit = units[before];
        bool takes = a != b && unit.is<BatchNorm>() && unit.function == Function::NONE;
        if (!takes || unit.hasResidual || !isAlone(before)) return false;
        unit.hasResidual = true;
        addInput(unit, other);
        return joinedAs(before, i);
      }
      KJ_CASE_ONEOF_DEFAULT {
        return false;
      }
    }
    KJ_UNREACHABLE;
  }

  bool joinedAs(UnitId unit, NodeId node) {
    units[unit].output = &graph.nodes[node];
    unitOf[node] = unit;
    return true;
  }

  const Graph& graph;
  const Phase phase;
  kj::Array<uint> readers;  // of each node
  kj::Array<UnitId> unitOf;
  kj::Vector<Unit> units;
};

void markTraining(kj::ArrayPtr<Unit> units) {
  auto needed = kj::heapArray<bool>(units.size());
  for (auto& each: needed) each = false;
  needed.back() = true;
  for (UnitId u = units.size(); u-- > 0;) {
    for (UnitId input: units[u].inputs) needed[input] = needed[input] || needed[u];
  }
  for (UnitId u = 0; u < units.size(); ++u) {
    auto& unit = units[u];
    unit.trains = unit.node->keys.size() > 0;
    for (UnitId input: unit.inputs) unit.trains = unit.trains || units[input].trains;
    // Inputs come before: what is not needed does not make them train.
    unit.trains = unit.trains && needed[u];
  }
}

// From the loss back to a dense layer, over what works element by element.
void markLogits(kj::ArrayPtr<Unit> units) {
  auto passesOn = [](const Unit& unit) {
    return unit.is<Activation>() || unit.is<Scale>() || unit.is<Dropout>();
  };
  UnitId last = units.back().inputs[0], first = last;
  while (passesOn(units[first]) && units[first].uses == 1) first = units[first].inputs[0];
  if (!units[first].is<Dense>() || units[first].uses != 1) return;
  for (UnitId u = last; u != first; u = units[u].inputs[0]) units[u].staysFloats = true;
  units[first].staysFloats = true;
}

}  // namespace

Function functionOf(const Activation& activation) {
  switch (activation.function) {
    case Activation::RELU:
      return Function::RELU;
    case Activation::TANH:
      return Function::TANH;
    case Activation::SIGMOID:
      return Function::SIGMOID;
    case Activation::ELU:
      return Function::ELU;
    case Activation::GELU:
      return Function::GELU;
  }
  KJ_UNREACHABLE;
}

kj::Array<Unit> lowerToUnits(const Graph& graph, Phase phase) {
  auto units = Fusion(graph, phase).run();
  markTraining(units);
  markLogits(units);
  return units;
}

}  // namespace nn::cuda

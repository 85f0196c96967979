#include "nn/units.h"

namespace nn {
namespace {

uint segmentOf(const Graph& graph, NodeId node) {
  for (uint s = 0; s < graph.segments.size(); ++s) {
    if (node < graph.segments[s].nodes.end) return s;
  }
  KJ_UNREACHABLE;
}

class Fuser {
public:
  Fuser(const Graph& graph, Phase phase, const Fusion& fusion)
      : graph(graph),
        phase(phase),
        fusion(fusion),
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
        Unit unit{.node = &node,
            .nodeId = i,
            .id = unitOf[i],
            .output = &node,
            .segment = segmentOf(graph, i)};
        takeActivationBefore(unit);
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
    // Returns the node that a reader of this node reads: the node, or the input of a dropout that
    // is left out.
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
    units[input].uses.add(Use{unit.id, uint(unit.inputs.size())});
    unit.inputs.add(input);
  }

  // Whether a single node reads the unit's value.
  bool isAlone(const Unit& unit) const { return readers[unit.output - graph.nodes.begin()] == 1; }

  // Lets a max pool apply the activation of the unit before it. With a stride, the pool's output
  // has fewer values. A monotonic function does not change which value is the largest. If it makes
  // several values equal, the pool takes the first of those that were largest before. A batch norm
  // applies its activation in a pass that it needs anyway.
  void takeActivationBefore(Unit& pool) {
    bool isMax = pool.is<Pool>() && pool.node->op.get<Pool>().function == Pool::MAX;
    if (!isMax) return;
    auto& before = units[unitOf[pool.node->inputs[0]]];
    KJ_IF_MAYBE(function, before.activation) {
      bool rises = *function != Activation::GELU;
      bool takes = rises && !before.is<BatchNorm>() && isAlone(before);
      if (!takes || !fusion.takesActivation(pool, *function)) return;
      pool.activation = *function;
      before.activation = nullptr;
    }
  }

  // Makes node `i` part of a unit before it, and returns true, if the backend can.
  bool join(NodeId i) {
    auto& node = graph.nodes[i];
    KJ_SWITCH_ONEOF(node.op) {
      KJ_CASE_ONEOF(op, Activation) {
        auto& unit = units[unitOf[node.inputs[0]]];
        bool takes = unit.activation == nullptr && fusion.takesActivation(unit, op.function);
        if (!takes || !isAlone(unit)) return false;
        unit.activation = op.function;
        return joinedTo(unit, i);
      }
      KJ_CASE_ONEOF(_, BatchNorm) {
        auto& unit = units[unitOf[node.inputs[0]]];
        bool takes = fusion.foldsNorms && phase == Phase::VALIDATE && unit.is<Conv2d>() &&
                     unit.activation == nullptr && unit.folded == nullptr;
        if (!takes || !isAlone(unit)) return false;
        unit.folded = node;
        return joinedTo(unit, i);
      }
      KJ_CASE_ONEOF(_, Add) {
        if (!fusion.addsResiduals || node.inputs.size() != 2) return false;
        UnitId a = unitOf[node.inputs[0]], b = unitOf[node.inputs[1]];
        // The other one's value is available when the later one runs.
        auto& unit = units[kj::max(a, b)];
        bool takes = a != b && unit.is<BatchNorm>() && unit.activation == nullptr;
        if (!takes || unit.hasResidual || !isAlone(unit)) return false;
        unit.hasResidual = true;
        addInput(unit, kj::min(a, b));
        return joinedTo(unit, i);
      }
      KJ_CASE_ONEOF_DEFAULT {
        return false;
      }
    }
    KJ_UNREACHABLE;
  }

  bool joinedTo(Unit& unit, NodeId node) {
    unit.output = &graph.nodes[node];
    unitOf[node] = unit.id;
    return true;
  }

  const Graph& graph;
  const Phase phase;
  const Fusion& fusion;
  kj::Array<uint> readers;  // of each node
  kj::Array<UnitId> unitOf;
  kj::Vector<Unit> units;
};

void markTraining(kj::ArrayPtr<Unit> units) {
  // Whether the loss, which is the last unit, depends on each.
  auto needed = kj::heapArray<bool>(units.size());
  for (auto& each: needed) each = false;
  needed.back() = true;
  for (UnitId u = units.size(); u-- > 0;) {
    for (UnitId input: units[u].inputs) needed[input] = needed[input] || needed[u];
  }
  for (auto& unit: units) {
    unit.trains = unit.node->keys.size() > 0;
    for (UnitId input: unit.inputs) unit.trains = unit.trains || units[input].trains;
    unit.trains = unit.trains && needed[unit.id];
  }
}

// From the loss back to a dense layer, through ops that work element by element.
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

}  // namespace

kj::Array<Unit> unitsOf(const Graph& graph, Phase phase, const Fusion& fusion) {
  auto units = Fuser(graph, phase, fusion).run();
  markTraining(units);
  markLogits(units);
  return units;
}

kj::Array<NodeId> droppingNodes(const Graph& graph) {
  kj::Vector<NodeId> nodes;
  for (NodeId i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].op.is<Dropout>()) nodes.add(i);
  }
  return nodes.releaseAsArray();
}

}  // namespace nn

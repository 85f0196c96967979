#include "tools/bench/ops.h"

#include <kj/debug.h>

#include <algorithm>

#include "runner/text/numbers.h"
#include "tools/bench/figures.h"

namespace tools {
namespace {

using nn::Profile;

kj::String windowOf(uint kernel, uint stride) {
  auto window = kj::str(kernel, "×", kernel);
  return stride == 1 ? kj::mv(window) : kj::str(window, "/", stride);
}

kj::String kindOf(const nn::Op& op) {
  if (op.is<nn::Conv2d>()) {
    auto& conv = op.get<nn::Conv2d>();
    return kj::str(nn::nameOf(op), ' ', windowOf(conv.kernel, conv.stride));
  }
  if (op.is<nn::Pool>()) {
    auto& pool = op.get<nn::Pool>();
    auto function = pool.function == nn::Pool::MAX ? "max" : "average";
    return kj::str(function, " pool ", windowOf(pool.kernel, pool.stride));
  }
  return kj::str(nn::nameOf(op));
}

bool isProduct(const nn::Node& node) {
  return node.op.is<nn::Conv2d>() || node.op.is<nn::Dense>();
}

// The memory that an op touches in one direction: values for each image, and weights once per step.
struct Touched {
  double values;
  double weights;
};

Touched touchedBy(
    const nn::Graph& graph, const nn::Node& node, bool inputTrains, Profile::Direction direction) {
  double inputs = 0, weights = 0, output = node.shape.size();
  for (auto input: node.inputs) inputs += graph.nodes[input].shape.size();
  for (auto& key: graph.keys.slice(node.keys.begin, node.keys.end)) weights += key.size;
  if (node.op.is<nn::SoftmaxCrossEntropy>()) return {2 * inputs, weights};
  if (direction == Profile::FORWARD) return {inputs + output, weights};
  double values = output + (inputTrains ? inputs : 0);
  if (isProduct(node) || node.op.is<nn::BatchNorm>())
    values += inputs;  // backward reads them again
  if (node.op.is<nn::Activation>()) values += output;
  return {values, isProduct(node) && inputTrains ? 2 * weights : weights};
}

kj::String percent(double part) {
  return kj::str(runner::fixedPoint(100 * part, 1), " %");
}

kj::StringPtr nameOf(Profile::Direction direction) {
  return direction == Profile::FORWARD ? "forward"_kj : "backward"_kj;
}

// Returns for each node whether its inputs depend on parameters. If not, its backward computes no
// gradient of them.
kj::Array<bool> inputsThatTrain(const nn::Graph& graph) {
  auto trains = kj::heapArray<bool>(graph.nodes.size());
  auto result = kj::heapArray<bool>(graph.nodes.size());
  for (nn::NodeId n: kj::indices(graph.nodes)) {
    auto& node = graph.nodes[n];
    result[n] = false;
    for (auto input: node.inputs) result[n] = result[n] || trains[input];
    trains[n] = result[n] || node.keys.size() > 0;
  }
  return result;
}

}  // namespace

kj::Array<NodeFlops> flopsOf(const nn::Graph& graph) {
  auto trains = inputsThatTrain(graph);
  return KJ_MAP(n, kj::indices(graph.nodes)) {
    auto& node = graph.nodes[n];
    auto inputs = KJ_MAP(input, node.inputs) {
      return graph.nodes[input].shape;
    };
    double forward = nn::forwardFlops(node.op, inputs);
    return NodeFlops{forward, trains[n] ? 2 * forward : forward};
  };
}

kj::Vector<OpCost> opCosts(
    const nn::Graph& graph, const nn::Profile& profile, uint images, uint steps, uint value_bytes) {
  kj::Vector<OpCost> costs;
  auto inputTrains = inputsThatTrain(graph);
  auto flops = flopsOf(graph);
  for (nn::NodeId n: kj::indices(graph.nodes)) {
    auto& node = graph.nodes[n];
    if (node.op.is<nn::Input>()) continue;
    for (auto direction: {Profile::FORWARD, Profile::BACKWARD}) {
      double seconds = profile.seconds(n, direction) / steps;
      if (seconds == 0) continue;
      auto touched = touchedBy(graph, node, inputTrains[n], direction);
      double own = direction == Profile::FORWARD ? flops[n].forward : flops[n].backward;
      costs.add(OpCost{.name = kj::str(node.name),
          .kind = kindOf(node.op),
          .direction = direction,
          .seconds = seconds,
          .flops = isProduct(node) ? own * images : 0,
          .bytes = touched.values * images * value_bytes + touched.weights * sizeof(float)});
    }
  }
  return costs;
}

kj::Vector<OpCost> byKind(kj::ArrayPtr<const OpCost> costs) {
  kj::Vector<OpCost> sums;
  kj::Vector<uint> counts;
  for (auto& cost: costs) {
    size_t i = 0;
    while (i < sums.size() && (sums[i].kind != cost.kind || sums[i].direction != cost.direction)) {
      ++i;
    }
    if (i == sums.size()) {
      sums.add(OpCost{nullptr, kj::str(cost.kind), cost.direction, 0, 0, 0});
      counts.add(0u);
    }
    sums[i].seconds += cost.seconds;
    sums[i].flops += cost.flops;
    sums[i].bytes += cost.bytes;
    sums[i].name = kj::str(++counts[i]);
  }
  std::stable_sort(sums.begin(), sums.end(),
      [](const OpCost& a, const OpCost& b) { return a.seconds > b.seconds; });
  return sums;
}

runner::TextTable opTable(
    kj::ArrayPtr<const OpCost> costs, double step_s, double fma_flops, double copy_bytes) {
  using runner::fixedPoint;
  kj::Vector<kj::Array<kj::String>> rows;
  double sum_s = 0;
  for (auto& cost: costs) {
    sum_s += cost.seconds;
    double flops = cost.flops / cost.seconds, bytes = cost.bytes / cost.seconds;
    bool isFma = flops / fma_flops >= bytes / copy_bytes;
    rows.add(cells(cost.name, cost.kind, nameOf(cost.direction), fixedPoint(cost.seconds * 1e3, 3),
        percent(cost.seconds / step_s), cost.flops == 0 ? kj::str() : fixedPoint(flops / 1e9, 1),
        fixedPoint(bytes / 1e9, 1),
        isFma ? kj::str(percent(flops / fma_flops), " fma")
              : kj::str(percent(bytes / copy_bytes), " copy")));
  }
  auto addSum = [&](kj::StringPtr name, double seconds) {
    rows.add(
        cells(name, "", "", fixedPoint(seconds * 1e3, 3), percent(seconds / step_s), "", "", ""));
  };
  addSum("ops", sum_s);
  addSum("waiting, store", step_s - sum_s);
  addSum("whole step", step_s);
  return {cells("op", "kind", "direction", "ms", "share", "GFLOP/s", "GB/s", "peak"),
      rows.releaseAsArray(), nullptr};
}

}  // namespace tools

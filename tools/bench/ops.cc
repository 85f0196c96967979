#include "tools/bench/ops.h"

#include <kj/debug.h>

#include <algorithm>

#include "runner/text/numbers.h"

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

// Counts of one op for one image, in values. Weights are counted once per step.
class Counts {
public:
  Counts(const nn::Graph& graph, const nn::Node& node, bool inputTrains)
      : node(node), inputTrains(inputTrains) {
    auto shapes = KJ_MAP(input, node.inputs) {
      return graph.nodes[input].shape;
    };
    for (auto& shape: shapes) inputs += shape.size();
    for (auto& key: graph.keys.slice(node.keys.begin, node.keys.end)) weights += key.size;
    isProduct = node.op.is<nn::Conv2d>() || node.op.is<nn::Dense>();
    if (isProduct) forwardFlops = nn::forwardFlops(node.op, shapes);
  }

  double flops(Profile::Direction direction) const {
    if (direction == Profile::FORWARD) return forwardFlops;
    return inputTrains ? 2 * forwardFlops : forwardFlops;
  }

  double values(Profile::Direction direction) const {
    double output = node.shape.size();
    if (node.op.is<nn::SoftmaxCrossEntropy>()) return 2 * inputs;
    if (direction == Profile::FORWARD) return inputs + output;
    double sum = output + (inputTrains ? inputs : 0);
    if (isProduct || node.op.is<nn::BatchNorm>()) sum += inputs;  // backward reads them again
    if (node.op.is<nn::Activation>()) sum += output;
    return sum;
  }

  double weightValues(Profile::Direction direction) const {
    return direction == Profile::BACKWARD && isProduct && inputTrains ? 2 * weights : weights;
  }

private:
  const nn::Node& node;
  bool inputTrains;
  bool isProduct;
  double inputs = 0;
  double weights = 0;
  double forwardFlops = 0;
};

kj::String percent(double part) {
  return kj::str(runner::fixedPoint(100 * part, 1), " %");
}

kj::StringPtr nameOf(Profile::Direction direction) {
  return direction == Profile::FORWARD ? "forward"_kj : "backward"_kj;
}

}  // namespace

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

kj::Vector<OpCost> opCosts(
    const nn::Graph& graph, const nn::Profile& profile, uint images, uint steps, uint value_bytes) {
  kj::Vector<OpCost> costs;
  auto inputTrains = inputsThatTrain(graph);
  for (nn::NodeId n: kj::indices(graph.nodes)) {
    auto& node = graph.nodes[n];
    if (node.op.is<nn::Input>()) continue;
    Counts counts(graph, node, inputTrains[n]);
    for (auto direction: {Profile::FORWARD, Profile::BACKWARD}) {
      double seconds = profile.seconds(n, direction) / steps;
      if (seconds == 0) continue;
      costs.add(OpCost{.name = kj::str(node.name),
          .kind = kindOf(node.op),
          .direction = direction,
          .seconds = seconds,
          .flops = counts.flops(direction) * images,
          .bytes = counts.values(direction) * images * value_bytes +
                   counts.weightValues(direction) * sizeof(float)});
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
  auto number = [](double value, uint decimals) { return runner::fixedPoint(value, decimals); };
  kj::Vector<kj::Array<kj::String>> rows;
  auto add = [&](kj::String name, kj::StringPtr kind, kj::StringPtr direction, double seconds,
                 kj::String flops, kj::String bytes, kj::String peak) {
    rows.add(kj::arr(kj::mv(name), kj::str(kind), kj::str(direction), number(seconds * 1e3, 3),
        percent(seconds / step_s), kj::mv(flops), kj::mv(bytes), kj::mv(peak)));
  };
  double sum_s = 0;
  for (auto& cost: costs) {
    sum_s += cost.seconds;
    double flops = cost.flops / cost.seconds, bytes = cost.bytes / cost.seconds;
    bool isFma = flops / fma_flops >= bytes / copy_bytes;
    add(kj::str(cost.name), cost.kind, nameOf(cost.direction), cost.seconds,
        cost.flops == 0 ? kj::str("") : number(flops / 1e9, 1), number(bytes / 1e9, 1),
        isFma ? kj::str(percent(flops / fma_flops), " fma")
              : kj::str(percent(bytes / copy_bytes), " copy"));
  }
  auto empty = []() { return kj::str(""); };
  add(kj::str("ops"), "", "", sum_s, empty(), empty(), empty());
  add(kj::str("waiting, store"), "", "", step_s - sum_s, empty(), empty(), empty());
  add(kj::str("whole step"), "", "", step_s, empty(), empty(), empty());
  auto header = kj::arr(kj::str("op"), kj::str("kind"), kj::str("direction"), kj::str("ms"),
      kj::str("share"), kj::str("GFLOP/s"), kj::str("GB/s"), kj::str("peak"));
  return {kj::mv(header), rows.releaseAsArray(), nullptr};
}

}  // namespace tools

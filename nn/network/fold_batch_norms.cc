#include "nn/network/fold_batch_norms.h"

#include <kj/debug.h>

#include <cmath>

namespace nn {
namespace {

// Returns for each node the batch norm that goes into it. Null: none does.
kj::Array<kj::Maybe<NodeId>> normsToFold(const Graph& graph) {
  auto readers = kj::heapArray<uint>(graph.nodes.size());
  for (auto& count: readers) count = 0;
  for (auto& node: graph.nodes) {
    for (NodeId input: node.inputs) ++readers[input];
  }
  auto norms = kj::heapArray<kj::Maybe<NodeId>>(graph.nodes.size());
  for (NodeId i = 0; i < graph.nodes.size(); ++i) {
    auto& node = graph.nodes[i];
    if (!node.op.is<BatchNorm>()) continue;
    NodeId before = node.inputs[0];
    auto& op = graph.nodes[before].op;
    if ((op.is<Conv2d>() || op.is<Dense>()) && readers[before] == 1) norms[before] = i;
  }
  return norms;
}

Op withBias(const Op& op) {
  if (op.is<Conv2d>()) {
    Conv2d conv = op.get<Conv2d>();
    conv.bias = true;
    return conv;
  }
  Dense dense = op.get<Dense>();
  dense.bias = true;
  return dense;
}

// Reads the arrays of one network.
class Arrays {
public:
  Arrays(const Graph& graph, kj::ArrayPtr<const float> parameters,
      kj::ArrayPtr<const float> statistics)
      : graph(graph), parameters(parameters), statistics(statistics) {}

  // The values of the key or the statistic that is number `index` of its node.
  kj::ArrayPtr<const float> key(const Node& node, uint index) const {
    auto& key = graph.keys[node.keys.begin + index];
    return parameters.slice(key.offset, key.offset + key.size);
  }
  kj::ArrayPtr<const float> statistic(const Node& node, uint index) const {
    auto& statistic = graph.statistics[node.statistics.begin + index];
    return statistics.slice(statistic.offset, statistic.offset + statistic.size);
  }

  // Appends the weight and the bias of `layer` with `norm` in it to `folded`.
  void fold(const Node& layer, const Node& norm, kj::Vector<float>& folded) const {
    auto& batchNorm = norm.op.get<BatchNorm>();
    auto weight = key(layer, 0), gamma = key(norm, 0), beta = key(norm, 1);
    auto mean = statistic(norm, 0), variance = statistic(norm, 1);
    bool hasBias = layer.keys.size() == 2;
    size_t rows = gamma.size(), cols = weight.size() / rows;
    auto factors = kj::heapArray<double>(rows);
    for (size_t k = 0; k < rows; ++k) {
      double scale = batchNorm.fixedGamma ? 1 : gamma[k];
      factors[k] = scale / std::sqrt(double(variance[k]) + batchNorm.epsilon);
    }
    for (size_t i = 0; i < weight.size(); ++i) folded.add(float(weight[i] * factors[i / cols]));
    for (size_t k = 0; k < rows; ++k) {
      double bias = hasBias ? key(layer, 1)[k] : 0;
      folded.add(float((bias - mean[k]) * factors[k] + beta[k]));
    }
  }

private:
  const Graph& graph;
  kj::ArrayPtr<const float> parameters;
  kj::ArrayPtr<const float> statistics;
};

}  // namespace

FoldedNetwork foldBatchNorms(const Graph& graph, kj::ArrayPtr<const float> parameters,
    kj::ArrayPtr<const float> statistics) {
  KJ_REQUIRE(parameters.size() == graph.parameters && statistics.size() == graph.statisticsSize,
      "these arrays are not the graph's", parameters.size(), statistics.size());
  Arrays arrays(graph, parameters, statistics);
  auto norms = normsToFold(graph);
  configs::Diagnostics diagnostics;
  GraphBuilder builder(graph.inputShape(), diagnostics);
  kj::Vector<float> newParameters(graph.parameters), newStatistics(graph.statisticsSize);
  // The new node of each old node. For a folded batch norm, this is its layer.
  auto ids = kj::heapArray<NodeId>(graph.nodes.size());
  ids[0] = 0;
  for (NodeId i = 1; i + 1 < graph.nodes.size(); ++i) {
    auto& node = graph.nodes[i];
    auto inputs = KJ_MAP(input, node.inputs) {
      return ids[input];
    };
    KJ_IF_MAYBE(norm, norms[i]) {
      arrays.fold(node, graph.nodes[*norm], newParameters);
      ids[i] = ids[*norm] = builder.add(node.name, withBias(node.op), inputs, node.span);
    } else if (node.op.is<BatchNorm>() && norms[node.inputs[0]] != nullptr) {
      continue;
    } else {
      for (uint k = 0; k < node.keys.size(); ++k) newParameters.addAll(arrays.key(node, k));
      for (uint s = 0; s < node.statistics.size(); ++s) {
        newStatistics.addAll(arrays.statistic(node, s));
      }
      ids[i] = builder.add(node.name, node.op, inputs, node.span);
    }
  }
  auto& loss = graph.nodes.back();
  Graph folded = builder.finish(ids[loss.inputs[0]], loss.span, loss.op.get<SoftmaxCrossEntropy>());
  KJ_ASSERT(diagnostics.count() == 0, diagnostics.format("the folded network"));
  folded.classNames = KJ_MAP(name, graph.classNames) {
    return kj::str(name);
  };
  folded.fanOutHasKernelArea = graph.fanOutHasKernelArea;
  return {.graph = kj::mv(folded),
      .parameters = newParameters.releaseAsArray(),
      .statistics = newStatistics.releaseAsArray()};
}

}  // namespace nn

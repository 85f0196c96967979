#include "runner/export/exported_network.h"

#include "runner/text/json.h"

namespace runner {

namespace {

// Returns how far the last of `count` windows reaches over the end of `side` values.
uint overhang(uint side, uint count, const nn::Pool& pool) {
  uint64_t end = uint64_t(count - 1) * pool.stride + pool.kernel;
  uint64_t inside = uint64_t(side) + pool.pad;
  return end > inside ? uint(end - inside) : 0;
}

}  // namespace

kj::Array<float> ExportedNetwork::valuesOf(const nn::Key& key) const {
  auto values = kj::heapArray<float>(parameters.slice(key.offset, key.offset + key.size));
  auto& op = graph.nodes[key.node].op;
  if (key.role == nn::Key::GAMMA && op.get<nn::BatchNorm>().fixedGamma) {
    for (float& value: values) value = 1;
  }
  return values;
}

kj::ArrayPtr<const float> ExportedNetwork::valuesOf(const nn::Statistic& statistic) const {
  return statistics.slice(statistic.offset, statistic.offset + statistic.size);
}

kj::Array<uint64_t> ExportedNetwork::shapeOf(const nn::Key& key) const {
  if (key.role != nn::Key::WEIGHT) return kj::arr(key.size);
  auto& op = graph.nodes[key.node].op;
  if (!op.is<nn::Conv2d>()) return kj::arr(uint64_t(key.rows), uint64_t(key.cols));
  uint64_t kernel = op.get<nn::Conv2d>().kernel;
  return kj::arr(uint64_t(key.rows), key.cols / (kernel * kernel), kernel, kernel);
}

kj::Array<kj::String> ExportedNetwork::classNames() const {
  // Class names may come from names of folders, which may hold any bytes.
  return KJ_MAP(label, kj::indices(graph.classNames)) {
    auto& name = graph.classNames[label];
    return name.size() == 0 ? kj::str(label) : inUtf8(name);
  };
}

nn::NodeId ExportedNetwork::inputOf(const nn::Node& node, uint index) const {
  nn::NodeId id = node.inputs[index];
  while (graph.nodes[id].op.is<nn::Dropout>()) id = graph.nodes[id].inputs[0];
  return id;
}

nn::NodeId ExportedNetwork::logits() const {
  return inputOf(graph.nodes.back(), 0);
}

Border borderOf(const nn::Pool& pool, nn::Shape input, nn::Shape output) {
  return {.top = pool.pad,
      .left = pool.pad,
      .bottom = overhang(input.height, output.height, pool),
      .right = overhang(input.width, output.width, pool)};
}

kj::Array<bool> vectorsOf(const nn::Graph& graph) {
  auto vectors = kj::heapArray<bool>(graph.nodes.size());
  for (nn::NodeId i = 0; i < graph.nodes.size(); ++i) {
    auto& node = graph.nodes[i];
    bool areInputs = node.inputs.size() > 0;
    for (auto input: node.inputs) areInputs = areInputs && vectors[input];
    bool makesImages = node.op.is<nn::Conv2d>() || node.op.is<nn::Pool>();
    vectors[i] = node.op.is<nn::Dense>() || (areInputs && !makesImages);
  }
  return vectors;
}

}  // namespace runner

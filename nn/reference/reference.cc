#include "nn/reference/reference.h"

#include <kj/debug.h>

#include <algorithm>

#include "nn/loops/floats.h"
#include "nn/reference/loops.h"

namespace nn {
namespace {

using namespace reference;

class ReferenceProgram final: public Program {
public:
  ReferenceProgram(const Graph& graph, ProgramOptions options)
      : graph(graph),
        images(options.batchSize),
        parameters_(zeros(graph.parameters)),
        gradients_(zerosIn(options.gradients, graph.parameters)),
        statistics_(zeros(graph.statisticsSize)),
        logits_(zeros(size_t(images) * graph.classes)),
        values(KJ_MAP(node, graph.nodes) { return Tensor(images, node.shape); }),
        slopes(KJ_MAP(node, graph.nodes) { return Tensor(images, node.shape); }) {}

  kj::ArrayPtr<float> parameters() override { return parameters_; }
  kj::ArrayPtr<float> gradients() override { return gradients_; }
  kj::ArrayPtr<float> statistics() override { return statistics_; }

  void setBatch(kj::ArrayPtr<const float> pixels, kj::ArrayPtr<const int32_t> labels,
      kj::ArrayPtr<const uint64_t> draws) override {
    KJ_REQUIRE(pixels.size() == images * graph.inputShape().size() && labels.size() == images,
        "the batch does not have the program's size", pixels.size(), labels.size(), images);
    for (int32_t label: labels) {
      KJ_REQUIRE(label >= -1 && label < int64_t(graph.classes),
          "a label lies outside of the classes", label, graph.classes);
    }
    for (size_t i = 0; i < pixels.size(); ++i) values[0].values[i] = pixels[i];
    this->labels = labels;
    this->draws = draws;
  }

  void forward(Phase phase, uint segment) override {
    auto nodes = graph.segments[segment].nodes;
    for (NodeId i = nodes.begin; i < nodes.end; ++i) {
      forwardNode(phase, i);
      for (double& slope: slopes[i].values) slope = 0;
    }
  }

  void backward(uint segment) override {
    auto nodes = graph.segments[segment].nodes;
    for (NodeId i = nodes.end; i-- > nodes.begin;) backwardNode(i);
  }

  BatchResult result() const override {
    BatchResult result;
    auto& x = values[logitsNode()];
    for (uint n = 0; n < images; ++n) {
      if (labels[n] == -1) continue;
      ++result.images;
      result.lossSum += values.back().values[n];
      uint best = 0;
      for (uint k = 1; k < graph.classes; ++k) {
        if (x.at(n, k, 0, 0) > x.at(n, best, 0, 0)) best = k;
      }
      result.correct += best == uint(labels[n]);
    }
    return result;
  }

  kj::ArrayPtr<const float> logits() override {
    auto& x = values[logitsNode()];
    for (size_t i = 0; i < logits_.size(); ++i) logits_[i] = float(x.values[i]);
    return logits_;
  }

  uint64_t memory_bytes() const override {
    uint64_t floats = parameters_.size() + gradients_.size() + statistics_.size() + logits_.size();
    uint64_t doubles = 0;
    for (auto& tensor: values) doubles += 2 * tensor.values.size();
    return floats * sizeof(float) + doubles * sizeof(double);
  }

private:
  const Graph& graph;
  uint images;
  kj::Array<float> parameters_;
  kj::Array<float> gradients_;
  kj::Array<float> statistics_;
  kj::Array<float> logits_;
  kj::Array<Tensor> values;  // of each node
  kj::Array<Tensor> slopes;  // gradients of the loss by them
  kj::ArrayPtr<const int32_t> labels;
  kj::ArrayPtr<const uint64_t> draws;

  NodeId logitsNode() const { return graph.nodes.back().inputs[0]; }

  kj::Array<const Tensor*> inputsOf(const Node& node) const {
    return KJ_MAP(input, node.inputs)->const Tensor* {
      return &values[input];
    };
  }
  kj::Array<Tensor*> slopesOf(const Node& node) {
    return KJ_MAP(input, node.inputs) {
      return &slopes[input];
    };
  }

  Range parameterRange(const Node& node) const {
    if (node.keys.size() == 0) return {};
    auto& last = graph.keys[node.keys.end - 1];
    return {graph.keys[node.keys.begin].offset, last.offset + last.size};
  }

  // The statistics to normalise with. In training these are those of the batch, which also update
  // the moving ones.
  kj::Array<double> moments(const BatchNorm& op, const Node& node, Phase phase, const Tensor& x) {
    auto& first = graph.statistics[node.statistics.begin];
    auto moving = statistics_.slice(first.offset, first.offset + 2 * first.size);
    if (phase == Phase::VALIDATE) return KJ_MAP(value, moving) {
        return double(value);
      };
    auto batch = momentsOf(x);
    for (size_t i = 0; i < batch.size(); ++i) {
      moving[i] = float(double(op.momentum) * moving[i] + (1 - double(op.momentum)) * batch[i]);
    }
    return batch;
  }

  void forwardNode(Phase phase, NodeId id) {
    auto& node = graph.nodes[id];
    if (node.op.is<Input>()) return;
    auto& x = values[node.inputs[0]];
    auto& y = values[id];
    auto range = parameterRange(node);
    auto parameters = parameters_.slice(range.begin, range.end);
    KJ_SWITCH_ONEOF(node.op) {
      KJ_CASE_ONEOF(op, Input) {
      }
      KJ_CASE_ONEOF(op, Conv2d) reference::forward(op, x, parameters, y);
      KJ_CASE_ONEOF(op, Dense) reference::forward(op, x, parameters, y);
      KJ_CASE_ONEOF(op, BatchNorm) {
        reference::forward(op, x, moments(op, node, phase, x), parameters, y);
      }
      KJ_CASE_ONEOF(op, Activation) reference::forward(op, x, y);
      KJ_CASE_ONEOF(op, Scale) reference::forward(op, x, y);
      KJ_CASE_ONEOF(op, Dropout) {
        if (phase == Phase::VALIDATE) {
          std::copy(x.values.begin(), x.values.end(), y.values.begin());
        } else {
          KJ_REQUIRE(draws.size() == images, "dropout needs a number for each row", draws.size());
          reference::forward(op, x, draws, id, y);
        }
      }
      KJ_CASE_ONEOF(op, Pool) reference::forward(op, x, y);
      KJ_CASE_ONEOF(op, Add) reference::forward(op, inputsOf(node), y);
      KJ_CASE_ONEOF(op, Concat) reference::forward(op, inputsOf(node), y);
      KJ_CASE_ONEOF(op, SoftmaxCrossEntropy) {
        reference::forward(phase == Phase::TRAIN ? op : SoftmaxCrossEntropy(), x, labels, y);
      }
    }
  }

  void backwardNode(NodeId id) {
    auto& node = graph.nodes[id];
    if (node.op.is<Input>()) return;
    auto& x = values[node.inputs[0]];
    auto& dx = slopes[node.inputs[0]];
    auto& dy = slopes[id];
    auto range = parameterRange(node);
    auto parameters = parameters_.slice(range.begin, range.end);
    auto sums = kj::heapArray<double>(range.size());
    for (double& sum: sums) sum = 0;
    KJ_SWITCH_ONEOF(node.op) {
      KJ_CASE_ONEOF(op, Input) {
      }
      KJ_CASE_ONEOF(op, Conv2d) reference::backward(op, x, parameters, dy, dx, sums);
      KJ_CASE_ONEOF(op, Dense) reference::backward(op, x, parameters, dy, dx, sums);
      KJ_CASE_ONEOF(op, BatchNorm) reference::backward(op, x, parameters, dy, dx, sums);
      KJ_CASE_ONEOF(op, Activation) reference::backward(op, x, dy, dx);
      KJ_CASE_ONEOF(op, Scale) reference::backward(op, dy, dx);
      KJ_CASE_ONEOF(op, Dropout) reference::backward(op, draws, id, dy, dx);
      KJ_CASE_ONEOF(op, Pool) reference::backward(op, x, dy, dx);
      KJ_CASE_ONEOF(op, Add) reference::backward(op, dy, slopesOf(node));
      KJ_CASE_ONEOF(op, Concat) reference::backward(op, dy, slopesOf(node));
      KJ_CASE_ONEOF(op, SoftmaxCrossEntropy) reference::backward(op, x, labels, dx);
    }
    for (size_t i = 0; i < sums.size(); ++i) gradients_[range.begin + i] = float(sums[i]);
  }
};

kj::Own<Program> lower(const Graph& graph, ProgramOptions options) {
  return kj::heap<ReferenceProgram>(graph, options);
}

}  // namespace

constinit const Backend REFERENCE = {
    .name = "reference",
    .doc = "Plain loops in double, to compare with: slow.",
    .lower = lower,
};
}  // namespace nn

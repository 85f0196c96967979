#include "runner/export/torch_network.h"

#include <kj/debug.h>
#include <kj/vector.h>

#include "runner/text/numbers.h"

namespace runner {

namespace {

// Writes the two functions of a module line by line.
class NetworkText {
public:
  NetworkText(const nn::Graph& graph, kj::ArrayPtr<const kj::String> names)
      : graph(graph),
        names(names),
        vectors(vectorsOf(graph)),
        variables(kj::heapArray<kj::String>(graph.nodes.size())) {
    nameVariables();
    for (nn::NodeId i = 1; i + 1 < graph.nodes.size(); ++i) write(i);
    auto last = graph.nodes.back().inputs[0];
    forward.add(kj::str("        return ",
        vectors[last] ? kj::str(variables[last])
                      : kj::str("torch.flatten(", variables[last], ", 1)"),
        "\n"));
  }

  kj::String text() const {
    return kj::str("    def __init__(self):\n        super().__init__()\n", kj::strArray(init, ""),
        "\n    def forward(self, images):\n", kj::strArray(forward, ""));
  }

private:
  const nn::Graph& graph;
  const kj::ArrayPtr<const kj::String> names;
  const kj::Array<bool> vectors;
  kj::Array<kj::String> variables;  // of the nodes' outputs
  kj::Vector<kj::String> init;      // lines
  kj::Vector<kj::String> forward;

  // A value that only the next line reads is `x`, so that its memory is free after that line.
  void nameVariables() {
    auto isChained = kj::heapArray<bool>(graph.nodes.size());
    for (auto& each: isChained) each = true;
    for (nn::NodeId reader = 1; reader < graph.nodes.size(); ++reader) {
      for (auto input: graph.nodes[reader].inputs) {
        isChained[input] = isChained[input] && reader == input + 1;
      }
    }
    variables[0] = kj::str("images");
    for (nn::NodeId i = 1; i + 1 < graph.nodes.size(); ++i) {
      variables[i] = isChained[i] ? kj::str("x") : kj::str(names[i]);
    }
  }

  nn::Shape inputShape(const nn::Node& node) const { return graph.nodes[node.inputs[0]].shape; }
  kj::StringPtr input(const nn::Node& node) const { return variables[node.inputs[0]]; }

  kj::String asImage(nn::NodeId id) const {
    return kj::str(variables[id], vectors[id] ? "[:, :, None, None]" : "");
  }
  kj::String imageInput(const nn::Node& node) const { return asImage(node.inputs[0]); }

  // Adds a module for node `id`, and its call.
  void addModule(nn::NodeId id, kj::StringPtr module, kj::StringPtr argument) {
    init.add(kj::str("        self.", names[id], " = ", module, "\n"));
    assign(id, kj::str("self.", names[id], "(", argument, ")"));
  }
  void assign(nn::NodeId id, kj::StringPtr value) {
    forward.add(kj::str("        ", variables[id], " = ", value, "\n"));
  }

  void write(nn::NodeId id) {
    auto& node = graph.nodes[id];
    KJ_SWITCH_ONEOF(node.op) {
      KJ_CASE_ONEOF(conv, nn::Conv2d) {
        auto module = kj::str("nn.Conv2d(", inputShape(node).channels, ", ", conv.filters, ", ",
            conv.kernel, conv.stride > 1 ? kj::str(", stride=", conv.stride) : kj::str(),
            conv.pad > 0 ? kj::str(", padding=", conv.pad) : kj::str(),
            conv.bias ? "" : ", bias=False", ")");
        addModule(id, module, imageInput(node));
      }
      KJ_CASE_ONEOF(dense, nn::Dense) {
        auto flat = vectors[node.inputs[0]] ? kj::str(input(node))
                                            : kj::str("torch.flatten(", input(node), ", 1)");
        auto module = kj::str("nn.Linear(", inputShape(node).size(), ", ", dense.units,
            dense.bias ? "" : ", bias=False", ")");
        addModule(id, module, flat);
      }
      KJ_CASE_ONEOF(norm, nn::BatchNorm) {
        addModule(id,
            kj::str("nn.BatchNorm", vectors[id] ? "1d" : "2d", "(", node.shape.channels,
                ", eps=", shortest(norm.epsilon), ", momentum=1 - ", shortest(norm.momentum), ")"),
            input(node));
        if (norm.fixedGamma) {
          init.add(
              kj::str("        self.", names[id], ".weight.requires_grad_(False)  # stays 1\n"));
        }
      }
      KJ_CASE_ONEOF(activation, nn::Activation) {
        assign(id, kj::str(functionOf(activation.function), "(", input(node), ")"));
      }
      KJ_CASE_ONEOF(scale, nn::Scale) {
        assign(id, kj::str(input(node), " * ", shortest(scale.factor)));
      }
      KJ_CASE_ONEOF(dropout, nn::Dropout) {
        addModule(id, kj::str("nn.Dropout(", dropout.rate, ")"), input(node));
      }
      KJ_CASE_ONEOF(pool, nn::Pool) {
        addModule(id, poolModule(pool, inputShape(node), node.shape), imageInput(node));
      }
      KJ_CASE_ONEOF(_, nn::Add) {
        assign(id, kj::strArray(joined(node, vectors[id]), " + "));
      }
      KJ_CASE_ONEOF(_, nn::Concat) {
        assign(id, kj::str("torch.cat([", kj::strArray(joined(node, vectors[id]), ", "), "], 1)"));
      }
      KJ_CASE_ONEOF(_, nn::Input) {
        KJ_UNREACHABLE;
      }
      KJ_CASE_ONEOF(_, nn::SoftmaxCrossEntropy) {
        KJ_UNREACHABLE;
      }
    }
  }

  kj::Array<kj::String> joined(const nn::Node& node, bool areVectors) const {
    return KJ_MAP(each, node.inputs) {
      return areVectors ? kj::str(variables[each]) : asImage(each);
    };
  }

  static kj::StringPtr functionOf(nn::Activation::Function function) {
    switch (function) {
      case nn::Activation::RELU:
        return "F.relu"_kj;
      case nn::Activation::TANH:
        return "torch.tanh"_kj;
      case nn::Activation::SIGMOID:
        return "torch.sigmoid"_kj;
      case nn::Activation::ELU:
        return "F.elu"_kj;
      case nn::Activation::GELU:
        return "F.gelu"_kj;
    }
    KJ_UNREACHABLE;
  }

  // PyTorch pads both ends of a side by the same number of pixels, at most half a kernel. For other
  // windows, a module before the pool adds the border.
  static kj::String poolModule(const nn::Pool& pool, nn::Shape input, nn::Shape output) {
    bool isMax = pool.function == nn::Pool::MAX;
    auto bare = isMax ? "nn.MaxPool2d("_kj : "nn.AvgPool2d("_kj;
    auto floorSide = [&](uint side) {
      return (side + 2 * pool.pad - pool.kernel) / pool.stride + 1;
    };
    if (2 * pool.pad <= pool.kernel && floorSide(input.height) == output.height &&
        floorSide(input.width) == output.width) {
      return kj::str(bare, pool.kernel, ", ", pool.stride,
          pool.pad > 0 ? kj::str(", padding=", pool.pad) : kj::str(), ")");
    }
    auto border = borderOf(pool, input, output);
    auto sides =
        kj::str("(", border.left, ", ", border.right, ", ", border.top, ", ", border.bottom, ")");
    return kj::str("nn.Sequential(nn.", isMax ? "ConstantPad2d(" : "ZeroPad2d(", sides,
        isMax ? ", -torch.inf" : "", "), ", bare, pool.kernel, ", ", pool.stride, "))");
  }
};

}  // namespace

kj::String torchNetwork(const nn::Graph& graph, kj::ArrayPtr<const kj::String> names) {
  auto shape = graph.inputShape();
  return kj::str("class Network(nn.Module):\n    \"\"\"Takes normalised images, N×", shape,
      ", and returns logits, N×", graph.classes, ".\"\"\"\n\n", NetworkText(graph, names).text());
}

}  // namespace runner

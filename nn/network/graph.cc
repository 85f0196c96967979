#include "nn/network/graph.h"

#include <kj/debug.h>

namespace nn {
namespace {

// The most that whitening may hold in memory, in every worker, before training: 87,000 images of
// CIFAR-10.
constexpr double IMAGES_BYTES_MAX = double(1 << 30);

constexpr kj::StringPtr LOSS = "loss"_kj;

}  // namespace

GraphBuilder::GraphBuilder(Shape input, configs::Diagnostics& diagnostics)
    : diagnostics(diagnostics) {
  append(Node{.name = kj::str("data"), .op = Input(), .shape = input}, true, false);
}

void GraphBuilder::checkName(kj::StringPtr name, const Op& op, configs::Span span) {
  constexpr kj::StringPtr WAY_OUT = "choose another name"_kj;
  if (op.is<SoftmaxCrossEntropy>()) return;
  if (name == LOSS) {
    diagnostics.error(
        span, kj::str("the name `", name, "` is reserved for the network's loss"), WAY_OUT);
    return;
  }
  KJ_IF_MAYBE(other, named.find(name)) {
    if (isNameGiven[*other]) {
      diagnostics.error(span, kj::str("two layers are named `", name, "`"));
    } else if (*other == 0) {
      diagnostics.error(
          span, kj::str("the name `", name, "` is reserved for the network's input"), WAY_OUT);
    } else {
      diagnostics.error(span,
          kj::str("an earlier layer without a name is called `", name, "` already"),
          "choose another name, or give that layer one");
    }
  }
}

kj::String GraphBuilder::nameFor(kj::StringPtr name, const Op& op) const {
  if (name.size() > 0) return kj::str(name);
  for (uint number = counts.find(uint(op.which())).orDefault(0);; ++number) {
    auto numbered = kj::str(nameOf(op), number);
    if (named.find(numbered) == nullptr) return numbered;
  }
}

void GraphBuilder::append(Node node, bool isKnown, bool isGiven) {
  NodeId id = nodes.size();
  ++counts.findOrCreate(uint(node.op.which()), [&]() {
    return kj::HashMap<uint, uint>::Entry{uint(node.op.which()), 0};
  });
  auto& added = nodes.add(kj::mv(node));
  named.findOrCreate(added.name, [&]() {
    return kj::HashMap<kj::StringPtr, NodeId>::Entry{added.name, id};
  });
  isShapeKnown.add(isKnown);
  isNameGiven.add(isGiven);
}

void GraphBuilder::addKey(kj::StringPtr name, Key::Role role, uint rows, uint cols) {
  uint64_t size = uint64_t(rows) * cols;
  keys.add(Key{.name = kj::str(name),
      .role = role,
      .node = NodeId(nodes.size()),
      .offset = parameters,
      .size = size,
      .rows = rows,
      .cols = cols});
  parameters += size;
}

void GraphBuilder::addStatistic(kj::StringPtr name, uint size, float initialValue) {
  statistics.add(Statistic{.name = kj::str(name),
      .node = NodeId(nodes.size()),
      .offset = statisticsSize,
      .size = size,
      .initialValue = initialValue});
  statisticsSize += size;
}

void GraphBuilder::addParameters(const Node& node, Shape input) {
  auto named = [&](kj::StringPtr role) { return kj::str(node.name, "_", role); };
  if (node.op.is<Conv2d>()) {
    auto& conv = node.op.get<Conv2d>();
    addKey(named("weight"), Key::WEIGHT, conv.filters, input.channels * conv.kernel * conv.kernel);
    if (conv.bias) addKey(named("bias"), Key::BIAS, conv.filters, 1);
  } else if (node.op.is<Dense>()) {
    auto& dense = node.op.get<Dense>();
    addKey(named("weight"), Key::WEIGHT, dense.units, input.size());
    if (dense.bias) addKey(named("bias"), Key::BIAS, dense.units, 1);
  } else if (node.op.is<BatchNorm>()) {
    auto& norm = node.op.get<BatchNorm>();
    addKey(named("gamma"), Key::GAMMA, input.channels, 1);
    // A gamma that is held must not decay either.
    if (norm.fixedGamma) keys.back().learningRateFactor = keys.back().decayFactor = 0;
    addKey(named("beta"), Key::BETA, input.channels, 1);
    addStatistic(named("moving_mean"), input.channels, norm.movingMeanStart);
    addStatistic(named("moving_var"), input.channels, norm.movingVarianceStart);
  }
}

void GraphBuilder::reportMisfit(
    const Op& op, kj::StringPtr node, kj::StringPtr sentence, configs::Span span) {
  if (op.is<SoftmaxCrossEntropy>()) {
    diagnostics.error(span, sentence);
  } else {
    // If a window does not fit, the images were too small from the start.
    auto& input = nodes[0].shape;
    bool isWindow = op.is<Conv2d>() || op.is<Pool>();
    diagnostics.error(span, kj::str("layer `", node, "`: ", sentence),
        isWindow ? kj::str("the network begins with images of ", input.height, "×", input.width)
                 : kj::str());
  }
}

kj::Maybe<kj::String> GraphBuilder::whiteningMisfit(
    const Node& node, const Initializer& initializer) const {
  if (!node.op.is<Conv2d>() || node.inputs[0] != 0) {
    return kj::str("only a convolution of the images themselves can begin with `whitening`");
  }
  auto& conv = node.op.get<Conv2d>();
  Shape images = shapeOf(0);
  uint64_t values = keys[node.keys.begin].cols;
  if (values > WHITENED_VALUES_MAX) {
    return kj::str("a patch of ", images.channels, "×", conv.kernel, "×", conv.kernel,
        " has too many values for `whitening`: at most ", WHITENED_VALUES_MAX);
  }
  if (conv.filters != 2 * values) {
    return kj::str("`whitening` of patches of ", images.channels, "×", conv.kernel, "×",
        conv.kernel, " gives ", 2 * values, " filters, not ", conv.filters);
  }
  if (conv.kernel > kj::min(images.height, images.width)) {
    return kj::str("no patch of ", conv.kernel, "×", conv.kernel, " lies in ", images.height, "×",
        images.width, " images");
  }
  double bytes = double(initializer.images) * images.size() * sizeof(float);
  if (bytes > IMAGES_BYTES_MAX) {
    return kj::str("`whitening` needs ", initializer.images, " images of ", images,
        ", which do not fit in 1 GiB: set `images` to at most ",
        uint64_t(IMAGES_BYTES_MAX / (images.size() * sizeof(float))));
  }
  return nullptr;
}

NodeId GraphBuilder::add(kj::StringPtr name, Op op, kj::ArrayPtr<const NodeId> inputs,
    configs::Span span, const kj::Maybe<Initializer>& initializer, kj::StringPtr kind) {
  KJ_REQUIRE(inputs.size() > 0, "every node but the first needs an input", name);
  auto shapes = KJ_MAP(input, inputs) {
    return shapeOf(input);
  };

  if (name.size() > 0) checkName(name, op, span);
  auto unique = nameFor(name, op);
  Shape shape = shapes[0];
  bool isKnown = true;
  for (auto input: inputs) isKnown = isKnown && isShapeKnown[input];
  if (isKnown) {
    KJ_IF_MAYBE(sentence, misfit(op, shapes)) {
      reportMisfit(op, name.size() == 0 && kind != nullptr ? kind : unique, *sentence, span);
      isKnown = false;
    } else {
      shape = inferShape(op, shapes);
    }
  }
  Node node{.name = kj::mv(unique),
      .op = kj::mv(op),
      .inputs = kj::heapArray(inputs),
      .shape = shape,
      .span = span};
  node.keys.begin = keys.size();
  node.statistics.begin = statistics.size();
  addParameters(node, shapes[0]);
  node.keys.end = keys.size();
  KJ_IF_MAYBE(own, initializer) {
    for (auto k = node.keys.begin; k < node.keys.end; ++k) keys[k].initializer = *own;
    if (own->kind == Initializer::WHITENING && isKnown) {
      KJ_IF_MAYBE(sentence, whiteningMisfit(node, *own)) {
        diagnostics.error(span, kj::str("layer `", node.name, "`: ", *sentence));
      }
    }
  }
  node.statistics.end = statistics.size();
  append(kj::mv(node), isKnown, name.size() > 0);
  return nodes.size() - 1;
}

Shape GraphBuilder::shapeOf(NodeId node) const {
  return nodes[node].shape;
}

Graph GraphBuilder::finish(NodeId logits, configs::Span span, SoftmaxCrossEntropy loss) {
  uint classes = shapeOf(logits).channels;
  add(LOSS, loss, kj::arrayPtr(&logits, 1), span);
  Graph graph{.nodes = nodes.releaseAsArray(),
      .keys = keys.releaseAsArray(),
      .statistics = statistics.releaseAsArray(),
      .parameters = parameters,
      .statisticsSize = statisticsSize,
      .classes = classes};
  graph.segments = cut(graph);
  return graph;
}

kj::Array<Segment> cut(const Graph& graph) {
  size_t count = graph.nodes.size();
  auto lastReader = kj::heapArray<NodeId>(count);
  for (NodeId i = 0; i < count; ++i) {
    lastReader[i] = i;
    for (NodeId input: graph.nodes[i].inputs) lastReader[input] = i;
  }

  auto ending = kj::heapArray<uint>(count);  // how many nodes each node is the last reader of
  for (auto& nodes: ending) nodes = 0;
  for (NodeId last: lastReader) ++ending[last];

  kj::Vector<Segment> segments;
  Segment current;
  uint crossing = 0;  // nodes before `i` that `i` or a later one reads
  for (NodeId i = 0; i < count; ++i) {
    auto& node = graph.nodes[i];
    if ((node.op.is<Conv2d>() || node.op.is<Dense>()) && current.parameters.size() > 0) {
      if (crossing == 1) {
        segments.add(current);
        current = {.nodes = {i, i}, .parameters = {current.parameters.end, current.parameters.end}};
      }
    }
    current.nodes.end = i + 1;
    for (auto k = node.keys.begin; k < node.keys.end; ++k) {
      current.parameters.end = graph.keys[k].offset + graph.keys[k].size;
    }
    crossing += 1 - ending[i];
  }
  segments.add(current);
  return segments.releaseAsArray();
}

}  // namespace nn

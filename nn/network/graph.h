// nn/network/graph.h: a network as a DAG of ops, with the table of its parameters' keys and its cut
// into segments.
#pragma once

#include <kj/array.h>
#include <kj/map.h>
#include <kj/memory.h>
#include <kj/string.h>
#include <kj/vector.h>

#include "configs/language/diagnostics.h"
#include "nn/network/init_config.h"
#include "nn/network/ops.h"

namespace nn {

using NodeId = uint;

// A named range of the flat parameter array: one array of one op.
struct Key {
  kj::String name;  // "conv1_weight": node name and role, as MXNet names them
  enum Role { WEIGHT, BIAS, GAMMA, BETA } role;
  NodeId node;
  uint64_t offset;  // floats
  uint64_t size;    // floats
  uint rows;        // first dimension: filters, units, channels
  uint cols;        // product of all other dimensions
  float learningRateFactor = 1;
  float decayFactor = 1;
  kj::Maybe<Initializer> initializer;  // the layer's own; null: the model's

  // Whether the values of this key never change (a fixed gamma).
  bool isHeld() const { return learningRateFactor == 0; }
};

// A named range of the flat statistics array (moving means and variances), which is never pushed.
struct Statistic {
  kj::String name;
  NodeId node;
  uint64_t offset;
  uint64_t size;
  float initialValue;
};

// A half-open range.
struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t size() const { return end - begin; }
};

// An op of the graph, with its inputs and its ranges of the graph's arrays.
struct Node {
  kj::String name;  // unique in the graph
  Op op;
  kj::Array<NodeId> inputs;
  Shape shape;         // of its output
  Range keys;          // into Graph::keys
  Range statistics;    // into Graph::statistics
  configs::Span span;  // the layer in the file that made it
};

// A part of the graph between two places where a single tensor crosses. A worker pushes the
// gradients of a segment together, and waits for its parameters together.
struct Segment {
  Range nodes;       // consecutive in Graph::nodes
  Range parameters;  // floats of the flat array
};

// Nodes in topological order: node 0 is the Input, the last the SoftmaxCrossEntropy. Immutable.
struct Graph {
  kj::Array<Node> nodes;
  kj::Array<Key> keys;              // in the order of nodes; offsets ascend without gaps
  kj::Array<Statistic> statistics;  // likewise
  kj::Array<Segment> segments;      // in order; each node is in exactly one of them
  uint64_t parameters;              // floats in the flat array
  uint64_t statisticsSize;          // floats in the statistics array
  uint classes;                     // channels of the loss's input
  // The names of the classes, by label, for people who read the weights. Empty if they are not
  // known.
  kj::Array<kj::String> classNames = nullptr;
  // Whether xavier's fan out of a convolution counts the kernel's area: see
  // nn/network/conventions.h.
  bool fanOutHasKernelArea = false;

  Shape inputShape() const { return nodes[0].shape; }
};

// Builds a Graph node by node. Reports shapes that do not fit to `diagnostics`, at the span of the
// node. The shape of such a node is unknown, so the nodes that depend on it are not checked. Other
// branches are.
class GraphBuilder {
public:
  GraphBuilder(Shape input, configs::Diagnostics& diagnostics);

  // Appends a node and returns its id. An empty `name` becomes the op's name and the number of such
  // ops before it ("conv2d3"). Reports a name that another node has. `initializer` is for the
  // node's weight and bias; null means the model's. If `name` is empty, messages about shapes call
  // the node `kind`, or the name that it gets if `kind` is null.
  NodeId add(kj::StringPtr name, Op op, kj::ArrayPtr<const NodeId> inputs, configs::Span span,
      const kj::Maybe<Initializer>& initializer = nullptr, kj::StringPtr kind = nullptr);
  Shape shapeOf(NodeId node) const;

  // Ends the graph with `loss` over `logits`, and returns it.
  Graph finish(NodeId logits, configs::Span span, SoftmaxCrossEntropy loss = {});

private:
  // Reports a name from the file that another node has, or that the loss will have.
  void checkName(kj::StringPtr name, const Op& op, configs::Span span);
  kj::String nameFor(kj::StringPtr name, const Op& op) const;
  void append(Node node, bool isKnown, bool isGiven);
  void reportMisfit(const Op& op, kj::StringPtr node, kj::StringPtr sentence, configs::Span span);
  void addKey(kj::StringPtr name, Key::Role role, uint rows, uint cols);
  void addStatistic(kj::StringPtr name, uint size, float initialValue);
  void addParameters(const Node& node, Shape input);
  // Why `node`, which was appended last, cannot begin with whitening filters.
  kj::Maybe<kj::String> whiteningMisfit(const Node& node, const Initializer& initializer) const;

  configs::Diagnostics& diagnostics;
  kj::Vector<Node> nodes;
  kj::Vector<bool> isShapeKnown;             // of each node
  kj::Vector<bool> isNameGiven;              // of each node, by the file or by the network
  kj::HashMap<kj::StringPtr, NodeId> named;  // the first node of each name, which `nodes` holds
  kj::HashMap<uint, uint> counts;            // how many nodes there are, by Op::which()
  kj::Vector<Key> keys;
  kj::Vector<Statistic> statistics;
  uint64_t parameters = 0;
  uint64_t statisticsSize = 0;
};

// Cuts the graph into segments. A segment begins at node 0, and at each node with a weight (conv2d,
// dense) before which a single tensor crosses from all earlier nodes to all later ones. Nodes
// before the first weight belong to the segment of that weight.
kj::Array<Segment> cut(const Graph& graph);

}  // namespace nn

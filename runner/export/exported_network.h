// runner/export/exported_network.h: a trained network, and facts about it that every format needs.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "nn/network/graph.h"

namespace runner {

using kj::uint;

// A network with its values. Owns nothing.
struct ExportedNetwork {
  const nn::Graph& graph;
  kj::ArrayPtr<const float> parameters;
  kj::ArrayPtr<const float> statistics;
  kj::StringPtr digest;  // the sha256 of the experiment that trained it; empty: unknown

  // The values of one array. A gamma that the network takes as 1 is 1.
  kj::Array<float> valuesOf(const nn::Key& key) const;
  kj::ArrayPtr<const float> valuesOf(const nn::Statistic& statistic) const;
  // The shape of a weight of `node`: O×I×H×W or O×I. Of other arrays: their size alone.
  kj::Array<uint64_t> shapeOf(const nn::Key& key) const;

  // The names of the classes, as well-formed UTF-8. One that is empty becomes its number. Empty if
  // none is known.
  kj::Array<kj::String> classNames() const;

  // Returns the node whose output has the logits. It is never a Dropout.
  nn::NodeId logits() const;
  // Returns the node whose output `node` reads as its input number `index`. Other programs do not
  // drop anything, so this looks through Dropouts.
  nn::NodeId inputOf(const nn::Node& node, uint index) const;
};

// Pixels around an image.
struct Border {
  uint top = 0;
  uint left = 0;
  uint bottom = 0;
  uint right = 0;

  bool isEmpty() const { return top + left + bottom + right == 0; }
};

// Returns the border that an image needs so that all windows of `pool` lie inside it. The side of
// the output is then floor((H + top + bottom - kernel) / stride) + 1. Each part is smaller than the
// kernel.
Border borderOf(const nn::Pool& pool, nn::Shape input, nn::Shape output);

// Returns for each node whether its output is N×C in other programs, and not N×C×1×1. This is so
// for dense layers, and for ops whose inputs are all N×C.
kj::Array<bool> vectorsOf(const nn::Graph& graph);

}  // namespace runner

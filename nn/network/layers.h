// nn/network/layers.h: layers as [[model.layers]] lists them, and how they become nodes of a graph.
#pragma once

#include <kj/array.h>
#include <kj/one-of.h>
#include <kj/string.h>

#include "configs/language/reader.h"
#include "nn/network/conventions.h"
#include "nn/network/graph.h"

namespace nn {

struct Layer;

// kind = "batch_norm". Absent keys come from the conventions.
struct BatchNormLayer {
  kj::Maybe<double> epsilon;
  kj::Maybe<double> momentum;
  kj::Maybe<bool> fixedGamma;
};

// kind = "pool".
struct PoolLayer {
  Pool::Function function;
  uint kernel;             // 0 = global: the whole input, which is square then
  kj::Maybe<uint> stride;  // absent = kernel
  uint pad = 0;
  kj::Maybe<Pool::Rounding> rounding;  // absent = from the conventions
};

// kind = "branches": several rows of layers over one input. An empty row is the input itself.
struct BranchesLayer {
  kj::Array<kj::Array<Layer>> branches;
  enum Join { CONCAT, ADD } join;
};

// kind = "residual": layers(x) + shortcut(x); an empty shortcut is x itself.
struct ResidualLayer {
  kj::Array<Layer> layers;
  kj::Array<Layer> shortcut;
};

// kind = "repeat": the same layers, `times` times one after another. Each copy has separate
// parameters.
struct RepeatLayer {
  uint times;
  kj::Array<Layer> layers;
};

// One table of [[model.layers]].
struct Layer {
  kj::String name;     // of its node; empty = numbered
  configs::Span span;  // where misfits are reported
  kj::OneOf<Conv2d, Dense, BatchNormLayer, Activation, Scale, Dropout, PoolLayer, BranchesLayer,
      ResidualLayer, RepeatLayer>
      content;
  kj::Maybe<Initializer> initializer;  // of a Conv2d or Dense; null: the model's
};

extern const kj::ArrayPtr<const configs::Kind<Layer>> LAYERS;

// The most nodes that the layers of a file may unroll to: far more than any network has, but still
// built quickly.
constexpr uint64_t UNROLLED_MAX = 100000;
// Returns how many nodes `layers` unroll to, or a little fewer.
uint64_t unrolled(kj::ArrayPtr<const Layer> layers);

// Adds `layers` to the graph as nodes over the node `input`. Returns the last node, or `input` if
// there are no layers. Branches come in the order of the file, then the node that joins them. The
// n-th copy of a named layer under `repeat` is called name_n, counted from 1.
NodeId addLayers(GraphBuilder& builder, kj::ArrayPtr<const Layer> layers, NodeId input,
    const Conventions& conventions);

}  // namespace nn

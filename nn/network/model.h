// nn/network/model.h: the [model] section: a network by name or layer by layer, and the initial
// values of its parameters.
#pragma once

#include <kj/array.h>
#include <kj/one-of.h>
#include <kj/string.h>

#include "configs/language/reader.h"
#include "nn/network/conventions.h"
#include "nn/network/graph.h"
#include "nn/network/init_config.h"

namespace nn {

struct Layer;  // one table of [[model.layers]], read; see layers.h

// [model]
struct ModelConfig {
  kj::OneOf<kj::String, kj::Array<Layer>> network;  // a name of NETWORKS, or layers
  const Conventions* conventions;
  Initializer initializer;
  configs::Span span;  // of the network's name, or of the list of layers

  static ModelConfig read(configs::Reader& reader);
  ModelConfig(ModelConfig&&) noexcept(false);
  ModelConfig& operator=(ModelConfig&&) noexcept(false);
  ~ModelConfig() noexcept(false);
  ModelConfig();
};

// Builds the graph of `config` for images of shape `input` and `classes` classes, with `loss` at
// its end. Reports misfits to `diagnostics` at the line of the layer. Use the graph only if there
// were none. Its spans point into the document.
Graph buildGraph(const ModelConfig& config, Shape input, uint classes,
    configs::Diagnostics& diagnostics, SoftmaxCrossEntropy loss = {});

}  // namespace nn

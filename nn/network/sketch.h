// nn/network/sketch.h: builds a list of layers in code, one call per layer.
#pragma once

#include <kj/array.h>
#include <kj/vector.h>

#include "nn/network/layers.h"

namespace nn {

// A list of layers that grows with each call. Names are names of nodes. Layers without a name are
// numbered.
class Sketch {
public:
  // Misfits are reported at `span`.
  explicit Sketch(configs::Span span): span(span) {}

  void conv(kj::StringPtr name, Conv2d conv, kj::Maybe<Initializer> initializer = nullptr) {
    add(name, kj::mv(conv), kj::mv(initializer));
  }
  void dense(kj::StringPtr name, Dense dense, kj::Maybe<Initializer> initializer = nullptr) {
    add(name, kj::mv(dense), kj::mv(initializer));
  }
  void batchNorm(kj::StringPtr name, BatchNormLayer norm = {}) { add(name, kj::mv(norm)); }
  void activation(kj::StringPtr name, Activation::Function function) {
    add(name, Activation{function});
  }
  void scale(kj::StringPtr name, float factor) { add(name, Scale{factor}); }
  void pool(kj::StringPtr name, PoolLayer pool) { add(name, kj::mv(pool)); }
  // Adds a convolution with bias, then a batch norm name_bn and a ReLU name_relu.
  void factory(kj::StringPtr name, uint filters, uint kernel, uint stride, uint pad) {
    conv(name, {.filters = filters, .kernel = kernel, .stride = stride, .pad = pad, .bias = true});
    batchNorm(kj::str(name, "_bn"));
    activation(kj::str(name, "_relu"), Activation::RELU);
  }
  // Adds branches whose channels are joined one after another.
  void concat(kj::StringPtr name, kj::Array<kj::Array<Layer>> branches) {
    add(name, BranchesLayer{.branches = kj::mv(branches), .join = BranchesLayer::CONCAT});
  }
  // Adds layers(x) + shortcut(x). An empty shortcut is x.
  void residual(kj::StringPtr name, Sketch&& layers, Sketch&& shortcut) {
    add(name, ResidualLayer{.layers = layers.finish(), .shortcut = shortcut.finish()});
  }

  // Returns an empty sketch for a branch.
  Sketch branch() const { return Sketch(span); }

  // Returns the layers and leaves the sketch empty.
  kj::Array<Layer> finish() { return layers.releaseAsArray(); }

private:
  configs::Span span;
  kj::Vector<Layer> layers;

  template <typename Content>
  void add(kj::StringPtr name, Content&& content, kj::Maybe<Initializer> initializer = nullptr) {
    Layer layer;
    layer.name = kj::str(name);
    layer.span = span;
    layer.content = kj::fwd<Content>(content);
    layer.initializer = kj::mv(initializer);
    layers.add(kj::mv(layer));
  }
};

}  // namespace nn

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

  void conv(kj::StringPtr name, Conv2d conv, kj::Maybe<Initializer> initializer = nullptr);
  void dense(kj::StringPtr name, Dense dense, kj::Maybe<Initializer> initializer = nullptr);
  void batchNorm(kj::StringPtr name, BatchNormLayer norm = {});
  void activation(kj::StringPtr name, Activation::Function function);
  void scale(kj::StringPtr name, float factor);
  void pool(kj::StringPtr name, PoolLayer pool);
  // Adds a convolution with bias, then a batch norm name_bn and a ReLU name_relu.
  void factory(kj::StringPtr name, uint filters, uint kernel, uint stride, uint pad);
  // Adds branches whose channels are joined one after another.
  void concat(kj::StringPtr name, kj::Array<kj::Array<Layer>> branches);
  // Adds layers(x) + shortcut(x). An empty shortcut is x.
  void residual(kj::StringPtr name, Sketch&& layers, Sketch&& shortcut);

  // Returns an empty sketch for a branch.
  Sketch branch() const { return Sketch(span); }

  // Returns the layers and leaves the sketch empty.
  kj::Array<Layer> finish() { return layers.releaseAsArray(); }

private:
  configs::Span span;
  kj::Vector<Layer> layers;

  template <typename Content>
  void add(kj::StringPtr name, Content&& content, kj::Maybe<Initializer> initializer = nullptr);
};

}  // namespace nn

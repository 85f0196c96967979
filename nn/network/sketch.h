// nn/network/sketch.h: writes a network layer by layer, as the file would.
#pragma once

#include <kj/array.h>
#include <kj/vector.h>

#include "nn/network/layers.h"

namespace nn {

// A list of layers in the making. Names are of nodes; layers without a name are numbered.
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
  // Convolution with bias, then name_bn and name_relu.
  void factory(kj::StringPtr name, uint filters, uint kernel, uint stride, uint pad);
  // The channels of the branches one after another.
  void concat(kj::StringPtr name, kj::Array<kj::Array<Layer>> branches);
  // layers(x) + shortcut(x); an empty shortcut is x.
  void residual(kj::StringPtr name, Sketch&& layers, Sketch&& shortcut);

  // A sketch for a branch.
  Sketch branch() const { return Sketch(span); }

  // The layers; the sketch is empty then.
  kj::Array<Layer> finish() { return layers.releaseAsArray(); }

private:
  configs::Span span;
  kj::Vector<Layer> layers;

  template <typename Content>
  void add(kj::StringPtr name, Content&& content, kj::Maybe<Initializer> initializer = nullptr);
};

}  // namespace nn

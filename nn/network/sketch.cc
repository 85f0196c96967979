#include "nn/network/sketch.h"

namespace nn {

template <typename Content>
void Sketch::add(kj::StringPtr name, Content&& content, kj::Maybe<Initializer> initializer) {
  Layer layer;
  layer.name = kj::str(name);
  layer.span = span;
  layer.content = kj::fwd<Content>(content);
  layer.initializer = kj::mv(initializer);
  layers.add(kj::mv(layer));
}

void Sketch::conv(kj::StringPtr name, Conv2d conv, kj::Maybe<Initializer> initializer) {
  add(name, kj::mv(conv), kj::mv(initializer));
}

void Sketch::dense(kj::StringPtr name, Dense dense, kj::Maybe<Initializer> initializer) {
  add(name, kj::mv(dense), kj::mv(initializer));
}

void Sketch::batchNorm(kj::StringPtr name, BatchNormLayer norm) {
  add(name, kj::mv(norm));
}

void Sketch::activation(kj::StringPtr name, Activation::Function function) {
  add(name, Activation{function});
}

void Sketch::scale(kj::StringPtr name, float factor) {
  add(name, Scale{factor});
}

void Sketch::pool(kj::StringPtr name, PoolLayer pool) {
  add(name, kj::mv(pool));
}

void Sketch::factory(kj::StringPtr name, uint filters, uint kernel, uint stride, uint pad) {
  conv(name, {.filters = filters, .kernel = kernel, .stride = stride, .pad = pad, .bias = true});
  batchNorm(kj::str(name, "_bn"));
  activation(kj::str(name, "_relu"), Activation::RELU);
}

void Sketch::concat(kj::StringPtr name, kj::Array<kj::Array<Layer>> branches) {
  add(name, BranchesLayer{.branches = kj::mv(branches), .join = BranchesLayer::CONCAT});
}

void Sketch::residual(kj::StringPtr name, Sketch&& layers, Sketch&& shortcut) {
  add(name, ResidualLayer{.layers = layers.finish(), .shortcut = shortcut.finish()});
}

}  // namespace nn

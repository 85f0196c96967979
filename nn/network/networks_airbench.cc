// The network of airbench94.
#include "nn/network/network_families.h"
#include "nn/network/sketch.h"

namespace nn {
namespace {

constexpr Initializer WHITENING = {.kind = Initializer::WHITENING, .images = 5000, .epsilon = 5e-4};
constexpr Initializer DIRAC = {.kind = Initializer::TORCH, .identity = true};
constexpr Initializer HEAD = {.kind = Initializer::TORCH};

void pool(Sketch& net, kj::StringPtr name, uint kernel) {
  net.pool(name, {.function = Pool::MAX, .kernel = kernel, .rounding = Pool::FLOOR});
}

// Gamma stays 1; the moving statistics take 0.4 of a batch.
void normGelu(Sketch& net, kj::StringPtr name, kj::StringPtr number) {
  net.batchNorm(
      kj::str(name, "_bn", number), {.epsilon = 1e-12, .momentum = 0.6, .fixedGamma = true});
  net.activation(kj::str(name, "_gelu", number), Activation::GELU);
}

void group(Sketch& net, kj::StringPtr name, uint filters) {
  Conv2d conv = {.filters = filters, .kernel = 3, .stride = 1, .pad = 1, .bias = false};
  net.conv(kj::str(name, "_conv1"), conv, DIRAC);
  pool(net, kj::str(name, "_pool"), 2);
  normGelu(net, name, "1");
  net.conv(kj::str(name, "_conv2"), conv, DIRAC);
  normGelu(net, name, "2");
}

}  // namespace

kj::Array<Layer> airbench94(uint classes, configs::Span span) {
  Sketch net(span);
  // 24 filters: 3·2·2 directions, and their negatives.
  net.conv("whiten", {.filters = 24, .kernel = 2, .stride = 1, .pad = 0, .bias = true}, WHITENING);
  net.activation("whiten_gelu", Activation::GELU);
  group(net, "group1", 64);
  group(net, "group2", 256);
  group(net, "group3", 256);
  pool(net, "pool", 3);
  net.dense("head", {.units = classes, .bias = false}, HEAD);
  net.scale("logits", 1.0f / 9);
  return net.finish();
}

}  // namespace nn

// Residual networks for CIFAR-10 and ImageNet.
#include <kj/debug.h>

#include "nn/network/network_families.h"
#include "nn/network/sketch.h"

namespace nn {
namespace {

constexpr uint STAGES = 3;

// Filters of stage 1, 2, 3: 16, 32, 64.
uint filtersOf(uint stage) {
  return 8u << stage;
}

// Units of a stage.
uint unitsOf(uint depth) {
  KJ_REQUIRE(depth >= 8 && depth % 6 == 2, "a depth is 6n + 2", depth);
  return (depth - 2) / 6;
}

// The first unit of all stages but the first halves height and width.
uint strideOf(uint stage, uint unit) {
  return stage > 1 && unit == 1 ? 2 : 1;
}

// convolution - BN - ReLU - convolution - BN beside the shortcut; their sum, ReLU.
void unit(Sketch& net, kj::StringPtr name, uint filters, uint stride) {
  auto layers = net.branch(), shortcut = net.branch();
  layers.factory(kj::str(name, "_conv1"), filters, 3, stride, 1);
  layers.conv(kj::str(name, "_conv2"), {filters, 3, 1, 1, true});
  layers.batchNorm(kj::str(name, "_conv2_bn"));
  if (stride > 1) {
    shortcut.conv(kj::str(name, "_shortcut"), {filters, 1, stride, 0, true});
    shortcut.batchNorm(kj::str(name, "_shortcut_bn"));
  }
  net.residual(kj::str(name, "_sum"), kj::mv(layers), kj::mv(shortcut));
  net.activation(kj::str(name, "_relu"), Activation::RELU);
}

// Batch norm of the second version, and ReLU.
void normRelu(Sketch& net, kj::StringPtr name, kj::StringPtr number) {
  net.batchNorm(
      kj::str(name, "bn", number), {.epsilon = 2e-5, .momentum = 0.9, .fixedGamma = false});
  net.activation(kj::str(name, "relu", number), Activation::RELU);
}

// The part of a unit after its first BN - ReLU.
void convolutionsV2(Sketch& net, kj::StringPtr name, uint filters, uint stride) {
  net.conv(kj::str(name, "conv1"), {filters, 3, stride, 1, false});
  normRelu(net, name, "2");
  net.conv(kj::str(name, "conv2"), {filters, 3, 1, 1, false});
}

// Twice BN - ReLU - convolution, beside a shortcut. The shortcut begins before the first BN. In the
// first unit of a stage, it begins after the first BN - ReLU and has a 1×1 convolution.
void unitV2(Sketch& net, kj::StringPtr name, uint filters, uint stride, bool isFirst) {
  auto layers = net.branch(), shortcut = net.branch();
  normRelu(isFirst ? net : layers, name, "1");
  convolutionsV2(layers, name, filters, stride);
  if (isFirst) shortcut.conv(kj::str(name, "shortcut"), {filters, 1, stride, 0, false});
  net.residual(kj::str(name, "sum"), kj::mv(layers), kj::mv(shortcut));
}

// A convolution that only its stride makes smaller, and its batch norm.
void normed(Sketch& net, kj::StringPtr name, uint filters, uint kernel, uint stride) {
  net.conv(name, {filters, kernel, stride, kernel / 2, false});
  net.batchNorm(kj::str(name, "_bn"), {.epsilon = 1e-5, .momentum = 0.9, .fixedGamma = false});
}

void normedRelu(Sketch& net, kj::StringPtr name, uint filters, uint kernel, uint stride) {
  normed(net, name, filters, kernel, stride);
  net.activation(kj::str(name, "_relu"), Activation::RELU);
}

// Two convolutions of 3×3, or with `isBottleneck` 1×1, 3×3, and 1×1 of four times as many filters,
// beside the shortcut; their sum, ReLU.
void imageNetUnit(Sketch& net, kj::StringPtr name, uint filters, uint stride, bool isBottleneck,
    bool hasShortcut) {
  auto layers = net.branch(), shortcut = net.branch();
  auto part = [&](kj::StringPtr what) { return kj::str(name, "_", what); };
  uint outputs = isBottleneck ? 4 * filters : filters;
  if (isBottleneck) {
    normedRelu(layers, part("conv1"), filters, 1, 1);
    normedRelu(layers, part("conv2"), filters, 3, stride);
    normed(layers, part("conv3"), outputs, 1, 1);
  } else {
    normedRelu(layers, part("conv1"), filters, 3, stride);
    normed(layers, part("conv2"), outputs, 3, 1);
  }
  if (hasShortcut) normed(shortcut, part("shortcut"), outputs, 1, stride);
  net.residual(part("sum"), kj::mv(layers), kj::mv(shortcut));
  net.activation(part("relu"), Activation::RELU);
}

}  // namespace

kj::Array<Layer> resnet(uint depth, uint classes, configs::Span span) {
  Sketch net(span);
  net.factory("conv0", filtersOf(1), 3, 1, 1);
  for (uint stage = 1; stage <= STAGES; ++stage) {
    for (uint i = 1; i <= unitsOf(depth); ++i) {
      unit(net, kj::str("stage", stage, "_unit", i), filtersOf(stage), strideOf(stage, i));
    }
  }
  // Of the whole image: 7×7 at 28.
  net.pool("pool", {.function = Pool::AVERAGE, .kernel = 0, .stride = 1u});
  net.dense("fc", {.units = classes, .bias = true});
  return net.finish();
}

kj::Array<Layer> resnetV2(uint depth, uint classes, configs::Span span) {
  Sketch net(span);
  net.batchNorm("data_bn", {.epsilon = 2e-5, .momentum = 0.9, .fixedGamma = true});
  net.conv("conv0", {filtersOf(1), 3, 1, 1, false});
  for (uint stage = 1; stage <= STAGES; ++stage) {
    for (uint i = 1; i <= unitsOf(depth); ++i) {
      unitV2(net, kj::str("stage", stage, "_unit", i, "_"), filtersOf(stage), strideOf(stage, i),
          i == 1);
    }
  }
  normRelu(net, "", "1");
  net.pool("pool", {.function = Pool::AVERAGE, .kernel = 0});
  net.dense("fc", {.units = classes, .bias = true});
  return net.finish();
}

kj::Array<Layer> imageNetResnet(
    kj::ArrayPtr<const uint> units, bool isBottleneck, uint classes, configs::Span span) {
  Sketch net(span);
  normedRelu(net, "conv0", 64, 7, 2);
  net.pool("pool0",
      {.function = Pool::MAX, .kernel = 3, .stride = 2u, .pad = 1, .rounding = Pool::FLOOR});
  for (uint stage = 1; stage <= units.size(); ++stage) {
    for (uint i = 1; i <= units[stage - 1]; ++i) {
      // Where the number of channels changes, in the first stage only with bottlenecks.
      bool hasShortcut = i == 1 && (stage > 1 || isBottleneck);
      imageNetUnit(net, kj::str("stage", stage, "_unit", i), 32u << stage, strideOf(stage, i),
          isBottleneck, hasShortcut);
    }
  }
  net.pool("pool", {.function = Pool::AVERAGE, .kernel = 0});
  net.dense("fc", {.units = classes, .bias = true});
  return net.finish();
}

}  // namespace nn

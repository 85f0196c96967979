// Inception with batch norm, for CIFAR-10 and for ImageNet.
#include "nn/network/network_families.h"
#include "nn/network/sketch.h"

namespace nn {
namespace {

// Pools round up. Otherwise branches of one join would not fit at 28 and at 224.
PoolLayer pool(Pool::Function function, uint kernel, uint stride, uint pad = 0) {
  return {
      .function = function, .kernel = kernel, .stride = stride, .pad = pad, .rounding = Pool::CEIL};
}

// Two convolutions side by side: 1×1 and 3×3.
void simple(Sketch& net, kj::StringPtr name, uint filters1x1, uint filters3x3) {
  auto small = net.branch(), large = net.branch();
  small.factory(kj::str(name, "_1x1"), filters1x1, 1, 1, 0);
  large.factory(kj::str(name, "_3x3"), filters3x3, 3, 1, 1);
  net.concat(kj::str(name, "_concat"), kj::arr(small.finish(), large.finish()));
}

// Halves height and width: a 3×3 convolution of stride 2 beside a maximum of the same windows.
void down(Sketch& net, kj::StringPtr name, uint filters) {
  auto conv = net.branch(), maximum = net.branch();
  conv.factory(kj::str(name, "_3x3"), filters, 3, 2, 1);
  maximum.pool(kj::str(name, "_pool"), pool(Pool::MAX, 3, 2));
  net.concat(kj::str(name, "_concat"), kj::arr(conv.finish(), maximum.finish()));
}

// A 3×3 convolution over fewer channels.
struct Reduced {
  uint reduce;  // channels that a 1×1 convolution makes first
  uint filters;
};

// Four branches: 1×1; 3×3; 3×3 twice; a pool of 3×3 and 1×1.
struct Block {
  const char* name;
  uint filters1x1;
  Reduced single;
  Reduced twice;
  Pool::Function pool;
  uint projected;  // filters after the pool
};

// A reduced 3×3 convolution, or, with `layers` 2, two of them. The last has `stride`.
kj::Array<Layer> reduced(
    const Sketch& net, kj::StringPtr name, Reduced channels, uint layers, uint stride) {
  auto branch = net.branch();
  branch.factory(kj::str(name, "_reduce"), channels.reduce, 1, 1, 0);
  if (layers == 1) {
    branch.factory(name, channels.filters, 3, stride, 1);
  } else {
    branch.factory(kj::str(name, "_0"), channels.filters, 3, 1, 1);
    branch.factory(kj::str(name, "_1"), channels.filters, 3, stride, 1);
  }
  return branch.finish();
}

void block(Sketch& net, const Block& block) {
  kj::StringPtr name = block.name;
  auto small = net.branch(), pooled = net.branch();
  small.factory(kj::str(name, "_1x1"), block.filters1x1, 1, 1, 0);
  pooled.pool(kj::str(name, "_pool"), pool(block.pool, 3, 1, 1));
  pooled.factory(kj::str(name, "_proj"), block.projected, 1, 1, 0);
  net.concat(kj::str(name, "_concat"),
      kj::arr(small.finish(), reduced(net, kj::str(name, "_3x3"), block.single, 1, 1),
          reduced(net, kj::str(name, "_double3x3"), block.twice, 2, 1), pooled.finish()));
}

// Halves height and width.
void reduction(Sketch& net, kj::StringPtr name, Reduced single, Reduced twice) {
  auto maximum = net.branch();
  maximum.pool(kj::str(name, "_pool"), pool(Pool::MAX, 3, 2));
  net.concat(kj::str(name, "_concat"),
      kj::arr(reduced(net, kj::str(name, "_3x3"), single, 1, 2),
          reduced(net, kj::str(name, "_double3x3"), twice, 2, 2), maximum.finish()));
}

// The pool is over the whole image: 7×7 at 28 and at 224.
void end(Sketch& net, uint classes) {
  net.pool("global_pool", pool(Pool::AVERAGE, 0, 1));
  net.dense("fc", {.units = classes, .bias = true});
}

}  // namespace

kj::Array<Layer> inceptionBn28Small(uint classes, configs::Span span) {
  Sketch net(span);
  net.factory("conv1", 96, 3, 1, 1);
  simple(net, "in3a", 32, 32);
  simple(net, "in3b", 32, 48);
  down(net, "in3c", 80);
  simple(net, "in4a", 112, 48);
  simple(net, "in4b", 96, 64);
  simple(net, "in4c", 80, 80);
  simple(net, "in4d", 48, 96);
  down(net, "in4e", 96);
  simple(net, "in5a", 176, 160);
  simple(net, "in5b", 176, 160);
  end(net, classes);
  return net.finish();
}

kj::Array<Layer> inceptionBn(uint classes, configs::Span span) {
  Sketch net(span);
  net.factory("conv1", 64, 7, 2, 3);
  net.pool("pool1", pool(Pool::MAX, 3, 2));
  net.factory("conv2_reduce", 64, 1, 1, 0);
  net.factory("conv2", 192, 3, 1, 1);
  net.pool("pool2", pool(Pool::MAX, 3, 2));
  block(net, {"in3a", 64, {64, 64}, {64, 96}, Pool::AVERAGE, 32});
  block(net, {"in3b", 64, {64, 96}, {64, 96}, Pool::AVERAGE, 64});
  reduction(net, "in3c", {128, 160}, {64, 96});
  block(net, {"in4a", 224, {64, 96}, {96, 128}, Pool::AVERAGE, 128});
  block(net, {"in4b", 192, {96, 128}, {96, 128}, Pool::AVERAGE, 128});
  block(net, {"in4c", 160, {128, 160}, {128, 160}, Pool::AVERAGE, 128});
  block(net, {"in4d", 96, {128, 192}, {160, 192}, Pool::AVERAGE, 128});
  reduction(net, "in4e", {128, 192}, {192, 256});
  block(net, {"in5a", 352, {192, 320}, {160, 224}, Pool::AVERAGE, 128});
  block(net, {"in5b", 352, {192, 320}, {192, 224}, Pool::MAX, 128});
  end(net, classes);
  return net.finish();
}

}  // namespace nn

#include "nn/networks.h"

#include <kj/vector.h>

namespace nn {
namespace {

// Writes a network layer by layer.
class Sketch {
public:
  explicit Sketch(configs::Span span): span(span) {}

  void conv(kj::StringPtr name, uint filters, uint kernel, uint stride = 1, uint pad = 0) {
    add(name, Conv2d{filters, kernel, stride, pad, true});
  }
  void dense(kj::StringPtr name, uint units) { add(name, Dense{units, true}); }
  void activation(kj::StringPtr name, Activation::Function function) {
    add(name, Activation{function});
  }
  void pool(kj::StringPtr name, Pool::Function function, uint kernel, uint stride) {
    add(name, PoolLayer{.function = function, .kernel = kernel, .stride = stride});
  }
  // Convolution, batch norm, ReLU.
  void factory(kj::StringPtr name, uint filters, uint kernel, uint stride, uint pad) {
    conv(name, filters, kernel, stride, pad);
    add(kj::str(name, "_bn"), BatchNormLayer());
    activation(kj::str(name, "_relu"), Activation::RELU);
  }
  void concat(kj::StringPtr name, Sketch&& first, Sketch&& second) {
    add(name, BranchesLayer{.branches = kj::arr(first.finish(), second.finish()),
                  .join = BranchesLayer::CONCAT});
  }
  // A sketch for a branch.
  Sketch branch() const { return Sketch(span); }

  kj::Array<Layer> finish() { return layers.releaseAsArray(); }

private:
  configs::Span span;
  kj::Vector<Layer> layers;

  template <typename Content>
  void add(kj::StringPtr name, Content&& content) {
    Layer layer;
    layer.name = kj::str(name);
    layer.span = span;
    layer.content = kj::mv(content);
    layers.add(kj::mv(layer));
  }
};

kj::Array<Layer> mlp(uint classes, configs::Span span) {
  Sketch net(span);
  net.dense("fc1", 128);
  net.activation("relu1", Activation::RELU);
  net.dense("fc2", 64);
  net.activation("relu2", Activation::RELU);
  net.dense("fc3", classes);
  return net.finish();
}

kj::Array<Layer> lenet(uint classes, configs::Span span) {
  Sketch net(span);
  net.conv("conv1", 20, 5);
  net.activation("tanh1", Activation::TANH);
  net.pool("pool1", Pool::MAX, 2, 2);
  net.conv("conv2", 50, 5);
  net.activation("tanh2", Activation::TANH);
  net.pool("pool2", Pool::MAX, 2, 2);
  net.dense("fc1", 500);
  net.activation("tanh3", Activation::TANH);
  net.dense("fc2", classes);
  return net.finish();
}

// Two convolutions side by side: 1×1 and 3×3.
void simple(Sketch& net, kj::StringPtr name, uint filters1x1, uint filters3x3) {
  auto small = net.branch(), large = net.branch();
  small.factory(kj::str(name, "_1x1"), filters1x1, 1, 1, 0);
  large.factory(kj::str(name, "_3x3"), filters3x3, 3, 1, 1);
  net.concat(kj::str(name, "_concat"), kj::mv(small), kj::mv(large));
}

// Halves height and width: a 3×3 convolution of stride 2 beside a maximum of the same windows.
void down(Sketch& net, kj::StringPtr name, uint filters) {
  auto conv = net.branch(), pool = net.branch();
  conv.factory(kj::str(name, "_3x3"), filters, 3, 2, 1);
  pool.pool(kj::str(name, "_pool"), Pool::MAX, 3, 2);
  net.concat(kj::str(name, "_concat"), kj::mv(conv), kj::mv(pool));
}

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
  net.pool("global_pool", Pool::AVERAGE, 7, 1);
  net.dense("fc", classes);
  return net.finish();
}

constexpr Network ROWS[] = {
    {"mlp",
        "Two hidden layers of 128 and 64 units with ReLU: 109,386 parameters for 28×28 and 10 "
        "classes.",
        mlp},
    {"lenet",
        "Two convolutions of 5×5 and two dense layers with tanh (LeCun 1998): 431,080 parameters "
        "for 28×28 and 10 classes.",
        lenet},
    {"inception-bn-28-small",
        "MXNet's small Inception with batch norm for 28×28 crops of CIFAR-10: 1,652,826 "
        "parameters.",
        inceptionBn28Small},
};

}  // namespace

constinit const kj::ArrayPtr<const Network> NETWORKS = ROWS;

}  // namespace nn

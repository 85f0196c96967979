#include "nn/network/networks.h"

#include "nn/network/network_families.h"
#include "nn/network/sketch.h"

namespace nn {
namespace {

kj::Array<Layer> mlp(uint classes, configs::Span span) {
  Sketch net(span);
  net.dense("fc1", {128, true});
  net.activation("relu1", Activation::RELU);
  net.dense("fc2", {64, true});
  net.activation("relu2", Activation::RELU);
  net.dense("fc3", {classes, true});
  return net.finish();
}

kj::Array<Layer> lenet(uint classes, configs::Span span) {
  constexpr auto conv = [](uint filters) { return Conv2d{filters, 5, 1, 0, true}; };
  Sketch net(span);
  net.conv("conv1", conv(20));
  net.activation("tanh1", Activation::TANH);
  net.pool("pool1", {.function = Pool::MAX, .kernel = 2});
  net.conv("conv2", conv(50));
  net.activation("tanh2", Activation::TANH);
  net.pool("pool2", {.function = Pool::MAX, .kernel = 2});
  net.dense("fc1", {500, true});
  net.activation("tanh3", Activation::TANH);
  net.dense("fc2", {classes, true});
  return net.finish();
}

kj::Array<Layer> lenetBn(uint classes, configs::Span span) {
  // Rounded up: 28 → 13 → 7 → 3 → 2.
  constexpr auto pool = []() {
    return PoolLayer{.function = Pool::MAX, .kernel = 2, .rounding = Pool::CEIL};
  };
  Sketch net(span);
  net.factory("conv1", 32, 3, 2, 0);
  net.pool("pool1", pool());
  net.factory("conv2", 32, 3, 2, 0);
  net.pool("pool2", pool());
  net.dense("fc", {classes, true});
  return net.finish();
}

// The function of a row, for one depth.
template <uint depth>
kj::Array<Layer> resnetOf(uint classes, configs::Span span) {
  return resnet(depth, classes, span);
}
template <uint depth>
kj::Array<Layer> resnetV2Of(uint classes, configs::Span span) {
  return resnetV2(depth, classes, span);
}

kj::Array<Layer> resnet18(uint classes, configs::Span span) {
  return imageNetResnet({2, 2, 2, 2}, false, classes, span);
}
kj::Array<Layer> resnet34(uint classes, configs::Span span) {
  return imageNetResnet({3, 4, 6, 3}, false, classes, span);
}
kj::Array<Layer> resnet50(uint classes, configs::Span span) {
  return imageNetResnet({3, 4, 6, 3}, true, classes, span);
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
    {"lenet-bn",
        "Two convolutions of 3×3 with stride 2 and batch norm, from MXNet's distributed MNIST "
        "example: 10,986 parameters for 28×28 and 10 classes.",
        lenetBn},
    {"inception-bn-28-small",
        "MXNet's small Inception with batch norm, for 28×28 crops or whole images of CIFAR-10: "
        "1,652,826 parameters.",
        inceptionBn28Small},
    {"inception-bn",
        "Inception with batch norm, for images of 224×224 or 227×227 (Ioffe and Szegedy 2015): "
        "11,295,240 parameters for 1,000 classes.",
        inceptionBn},
    {"resnet-20",
        "Residual network for 28×28 crops or whole images of CIFAR-10, with ReLU after the sum (He "
        "et al. 2015): 273,258 parameters.",
        resnetOf<20>},
    {"resnet-32", "Like `resnet-20`, with 5 units per stage: 468,138 parameters.", resnetOf<32>},
    {"resnet-56", "Like `resnet-20`, with 9 units per stage: 857,898 parameters.", resnetOf<56>},
    {"resnet-110", "Like `resnet-20`, with 18 units per stage: 1,734,858 parameters.",
        resnetOf<110>},
    {"resnet-20-v2",
        "Residual network for CIFAR-10, with batch norm and ReLU before each convolution (He et "
        "al. 2016): 272,544 parameters.",
        resnetV2Of<20>},
    {"resnet-32-v2", "Like `resnet-20-v2`, with 5 units per stage: 466,976 parameters.",
        resnetV2Of<32>},
    {"resnet-56-v2", "Like `resnet-20-v2`, with 9 units per stage: 855,840 parameters.",
        resnetV2Of<56>},
    {"resnet-110-v2", "Like `resnet-20-v2`, with 18 units per stage: 1,730,784 parameters.",
        resnetV2Of<110>},
    {"resnet-18",
        "Residual network for images of 224×224, with the layers and the batch norm of torchvision "
        "(He et al. 2015): 11,689,512 parameters for 1,000 classes.",
        resnet18},
    {"resnet-34", "Like `resnet-18`, with 34 layers: 21,797,672 parameters.", resnet34},
    {"resnet-50", "Like `resnet-34`, with three convolutions per unit: 25,557,032 parameters.",
        resnet50},
    {"airbench94",
        "The network of airbench94 for CIFAR-10, with its own initial weights and batch norm "
        "(Jordan 2024, arXiv 2404.00498): 1,972,792 parameters.",
        airbench94, 3},
};

}  // namespace

constinit const kj::ArrayPtr<const Network> NETWORKS = ROWS;

}  // namespace nn

// nn/network/network_families.h: the layers of the networks that have a name, one file per family.
#pragma once

#include <kj/array.h>

#include "nn/network/layers.h"

namespace nn {

// Each network ends with a dense layer of `classes` values. Misfits are reported at `span`. A
// network leaves some numbers to the conventions, mostly those of batch norm. If its shapes depend
// on how a pool rounds, the network sets the rounding.

// networks_inception.cc: Inception with batch norm (Ioffe and Szegedy 2015), as MXNet's scripts of
// 2015 have it. The first is for images of 28×28, the second for 224×224 or 227×227.
kj::Array<Layer> inceptionBn28Small(uint classes, configs::Span span);
kj::Array<Layer> inceptionBn(uint classes, configs::Span span);

// networks_resnet.cc: residual networks for CIFAR-10 (He et al. 2015, section 4.2) of depth 6n + 2,
// in MXNet's two versions. resnet() has a ReLU after each sum (February 2016, for 28×28). In
// resnetV2(), batch norm and ReLU come before each convolution (v0.8 on; He et al. 2016).
kj::Array<Layer> resnet(uint depth, uint classes, configs::Span span);
kj::Array<Layer> resnetV2(uint depth, uint classes, configs::Span span);
// networks_resnet.cc: residual networks for ImageNet (He et al. 2015, table 1) in the form that
// torchvision trains: the 3×3 convolution of a bottleneck has the stride, and no convolution has a
// bias. `units` has the number of residual units of each stage. These networks set their own batch
// norm, so the conventions hardly matter.
kj::Array<Layer> imageNetResnet(
    kj::ArrayPtr<const kj::uint> units, bool isBottleneck, uint classes, configs::Span span);

// networks_airbench.cc: the network of airbench94 (Jordan 2024, arXiv 2404.00498), for 3×32×32. It
// sets its own initial weights and batch norm, so the conventions change nothing.
kj::Array<Layer> airbench94(uint classes, configs::Span span);

}  // namespace nn

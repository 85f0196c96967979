// nn/cuda/testing/network_convolutions.h: lists the convolutions of a network.
#pragma once

#include "nn/cuda/device.h"
#include "nn/cuda/lowering.h"

namespace nn::cuda {

struct AskedConvolution {
  ConvolutionProblem shape;
  Direction direction;
};

// Each convolution that training `network` (a name of NETWORKS) with batches of `images` takes,
// once, in the order of the work.
kj::Array<AskedConvolution> convolutionsOf(kj::StringPtr network, nn::Shape input, uint classes,
    uint images, const LoweringOptions& options);

// Descriptions of two GPUs for describedDevice(), from their public figures. This machine need not
// have them.
kj::String h100();
kj::String h200();

}  // namespace nn::cuda

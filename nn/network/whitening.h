// nn/network/whitening.h: initial filters of a convolution that whiten patches of images.
#pragma once

#include <kj/array.h>

#include "nn/network/init_config.h"
#include "nn/network/ops.h"

namespace nn {

// Fills `filters`, 2·P×C×k×k with P = C·k² ≤ WHITENED_VALUES_MAX, from all k×k patches x of
// `images`, N×C×H×W with N > 0 and k ≤ H, W:
//   M = mean of x·xᵀ = Σᵢ eᵢ λᵢ eᵢᵀ, λ falling;  filter i = eᵢ / sqrt(λᵢ + epsilon),
//   filter P + i = -filter i.
// Of eᵢ and -eᵢ, the one whose largest component is positive comes first. The mean of the patches
// is not subtracted, because a bias learns it. This is the whitening layer of airbench94 (Jordan
// 2024, arXiv 2404.00498). All sums are in double, in a fixed order.
void whiten(kj::ArrayPtr<const float> images, Shape shape, uint kernel, double epsilon,
    kj::ArrayPtr<float> filters);

}  // namespace nn

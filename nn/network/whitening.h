// nn/network/whitening.h: filters of a convolution that make patches of images white.
#pragma once

#include <kj/array.h>

#include "nn/network/init_config.h"
#include "nn/network/ops.h"

namespace nn {

// Fills `filters`, 2·P×C×k×k with P = C·k² ≤ WHITENED_VALUES_MAX, from all k×k patches x of
// `images`, N×C×H×W with N > 0 and k ≤ H, W:
//   M = mean of x·xᵀ = Σᵢ eᵢ λᵢ eᵢᵀ, λ falling;  filter i = eᵢ / sqrt(λᵢ + epsilon),
//   filter P + i = -filter i.
// Of eᵢ and -eᵢ the one whose largest component is positive comes first. The mean of the patches is
// not subtracted (a bias learns it): airbench94's whitening layer (Jordan 2024, arXiv 2404.00498).
// All sums in double, in one order.
void whiten(kj::ArrayPtr<const float> images, Shape shape, uint kernel, double epsilon,
    kj::ArrayPtr<float> filters);

}  // namespace nn

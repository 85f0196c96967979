// nn/network/fold_batch_norms.h: a network for use after training, without the batch norms that can
// be folded into convolutions and dense layers.
#pragma once

#include <kj/array.h>

#include "nn/network/graph.h"

namespace nn {

// A graph with its two flat arrays.
struct FoldedNetwork {
  Graph graph;
  kj::Array<float> parameters;
  kj::Array<float> statistics;
};

// Returns a network that validates like `graph` with these arrays, but has no batch norm after a
// convolution or a dense layer that only this batch norm reads. With s = gamma / sqrt(variance +
// epsilon), filter k of that layer becomes s[k] · w[k], and its bias s[k] · (b[k] - mean[k]) +
// beta[k]. The layer keeps its name, and gets a bias if it had none. All other nodes and their
// arrays stay as they are.
//
// Logits differ by rounding only. The result is for validation. Training it is not equivalent to
// training `graph`. Its keys have no initializers.
FoldedNetwork foldBatchNorms(
    const Graph& graph, kj::ArrayPtr<const float> parameters, kj::ArrayPtr<const float> statistics);

}  // namespace nn

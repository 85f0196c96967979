// nn/network/initializer.h: fills parameters and moving statistics with their first values.
#pragma once

#include <kj/array.h>

#include "nn/network/graph.h"
#include "nn/network/init_config.h"

namespace nn {

// Training images that initialize() should see: the most that a key's initializer asks for.
uint imagesToInitialize(const Graph& graph);

// Fills the flat parameter array and the statistics with their initial values: a function of (seed,
// key) alone, and for keys that are made from images, of these. `initializer` is for keys that have
// none of their own. `images`: N×C×H×W, normalised as in a batch, un-augmented, of the graph's
// input shape; of more than imagesToInitialize() the first are taken, fewer will do, none only if
// it is 0.
void initialize(const Graph& graph, const Initializer& initializer, uint64_t seed,
    kj::ArrayPtr<float> parameters, kj::ArrayPtr<float> statistics,
    kj::ArrayPtr<const float> images = nullptr);

}  // namespace nn

// nn/network/initializer.h: fills parameters and moving statistics with their initial values.
#pragma once

#include <kj/array.h>

#include "nn/network/graph.h"
#include "nn/network/init_config.h"

namespace nn {

// Returns how many training images initialize() needs: the most that any key's initializer asks
// for.
uint imagesToInitialize(const Graph& graph);

// Fills the flat parameter array and the statistics with their initial values. The values depend
// only on (seed, key), and for keys that are made from images, on the images. `initializer` is for
// keys without their own.
//
// `images` is N×C×H×W: normalised as in a batch, not augmented, of the graph's input shape. If
// there are more than imagesToInitialize(), the first ones are used. There may be fewer, but at
// least one unless imagesToInitialize() is 0.
void initialize(const Graph& graph, const Initializer& initializer, uint64_t seed,
    kj::ArrayPtr<float> parameters, kj::ArrayPtr<float> statistics,
    kj::ArrayPtr<const float> images = nullptr);

}  // namespace nn

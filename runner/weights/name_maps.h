// runner/weights/name_maps.h: the names that other systems give to the arrays of a network.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "nn/network/graph.h"

namespace runner {

// Returns the names that files of PyTorch and of MXNet may have for the array `name` of `node`
// (`conv1_weight`, `conv1_bn_moving_mean`), which is one of the node's keys or statistics. A reader
// takes the first one that its file has, after `name` itself.
kj::Array<kj::String> namesElsewhere(const nn::Graph& graph, nn::NodeId node, kj::StringPtr name);

// Whether an array of another system does not affect what the network computes, such as the
// counters of PyTorch's batch norms.
bool isBookkeeping(kj::StringPtr name);

}  // namespace runner

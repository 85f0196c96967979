// runner/roles/weights.h: final weights as a safetensors file.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "nn/network/graph.h"

namespace runner {

using kj::uint;

// Writes the flat arrays as `path`: the safetensors format (8-byte little-endian length of a JSON
// header, the header, then all values as float32), one tensor a key and a statistic under their
// names, conv weights as O×I×H×W. `digest` (of the experiment) goes into the metadata. Atomic.
// Returns the sha256 of all values as they stand in the file, parameters then statistics.
kj::String writeWeights(kj::StringPtr path, const nn::Graph& graph, kj::StringPtr digest,
    kj::ArrayPtr<const float> parameters, kj::ArrayPtr<const float> statistics);

// Why the file at `path` is not the one for which writeWeights() returned `sha256`: it is gone, cut
// short, or holds other values. Null if it is that file.
kj::Maybe<kj::String> whyNotWeights(kj::StringPtr path, kj::StringPtr sha256);

}  // namespace runner

// runner/checkpoints/weights.h: writes the final weights as a safetensors file.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "nn/network/graph.h"
#include "runner/checkpoints/safetensors.h"

namespace runner {

using kj::uint;

// Returns the shape of a key's tensor in a file of weights: "64,3,5,5".
kj::String shapeOf(const nn::Key& key, const nn::Graph& graph);

// The most bytes that the names of the classes take in the header of a file. Readers refuse a
// header of more than 4 MiB.
constexpr size_t CLASS_NAMES_BYTES_MAX = 1 << 20;
// Whether the names of the network's classes fit into the header of its weights.
bool classNamesFit(const nn::Graph& graph);

// Returns the bytes that precede the values in a file of weights. `notes` go into the metadata,
// beside the digest and the names of the classes. Leaves out names that do not fit.
kj::Array<kj::byte> weightsHead(
    const nn::Graph& graph, kj::StringPtr digest, kj::ArrayPtr<const Note> notes = nullptr);

// Writes the flat arrays to `path` in the safetensors format, as float32. There is one tensor per
// key and one per statistic, under their names. Conv weights are O×I×H×W. `digest` (of the
// experiment) and `notes` go into the metadata. Replaces the file atomically. Returns the sha256 of
// all values in the order of the file, parameters first.
kj::String writeWeights(kj::StringPtr path, const nn::Graph& graph, kj::StringPtr digest,
    kj::ArrayPtr<const float> parameters, kj::ArrayPtr<const float> statistics,
    kj::ArrayPtr<const Note> notes = nullptr);

// Returns why the file at `path` is not the one for which writeWeights() returned `sha256`: it is
// missing, cut off, or holds other values. Null if it is that file. Throws if it cannot be read,
// because it may be that file, and nobody may replace it.
kj::Maybe<kj::String> whyNotWeights(kj::StringPtr path, kj::StringPtr sha256);

}  // namespace runner

// runner/weights/load_weights.h: puts the arrays of a file of weights into a network.
#pragma once

#include <kj/array.h>
#include <kj/string.h>
#include <kj/vector.h>

#include "nn/network/graph.h"
#include "runner/weights/weights_file.h"

namespace runner {

// Which arrays of a network were loaded, and which arrays of a file were used.
struct LoadReport {
  // An array of the network whose values in the file have another shape.
  struct Misfit {
    kj::String name;
    kj::String inFile;  // "512,10"
    kj::String inNetwork;
  };

  // Names of arrays of the network, parameters first.
  kj::Vector<kj::String> loaded;
  kj::Vector<kj::String> skipped;  // as the caller asked
  kj::Vector<kj::String> missing;  // the file does not have them
  kj::Vector<Misfit> misfits;
  // Names of arrays of the file that the network does not use.
  kj::Vector<kj::String> unused;

  // Returns one line about all groups: "loaded 34 arrays; skipped fc_weight, fc_bias".
  kj::String text() const;
  // Returns which arrays, other than skipped ones, were not loaded, as a clause about the file.
  // Null if all were.
  kj::Maybe<kj::String> whyIncomplete() const;
};

// Copies the arrays of `file` into the flat arrays of `graph`, by their names. Arrays that the file
// lacks, or has in another shape, keep their values. So do arrays whose names match an entry of
// `skip`: see nn::matches(). Files of PyTorch and MXNet may have their own names: see name_maps.h.
// Real numbers of other types become float32. Throws, with the path, if a value that it copies is
// not finite. Also throws if the file has another value than 1 for a gamma that the network keeps
// at 1, or if two arrays of the network would be loaded from the same array of the file.
LoadReport loadWeights(const WeightsFile& file, const nn::Graph& graph,
    kj::ArrayPtr<const kj::String> skip, kj::ArrayPtr<float> parameters,
    kj::ArrayPtr<float> statistics);

}  // namespace runner

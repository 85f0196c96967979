// runner/weights/start.h: starts the training of a network from trained weights: the keys `weights`
// and `skip` of [model].
#pragma once

#include "runner/experiment/experiment.h"
#include "runner/weights/load_weights.h"

namespace runner {

// Replaces initial values by trained ones, as `start` says. Throws, and says what to do, if the
// file cannot be read, or does not have all arrays of the network that are not skipped.
LoadReport startFrom(const StartWeights& start, const nn::Graph& graph,
    kj::ArrayPtr<float> parameters, kj::ArrayPtr<float> statistics);

// Finds out before the run whether startFrom() will succeed, and reports to `diagnostics` why not.
// Returns one line for the user that says what it will load and skip. Null if the run starts from
// initial values, or if there was an error.
kj::Maybe<kj::String> checkStart(
    const Experiment& experiment, const nn::Graph& graph, configs::Diagnostics& diagnostics);

}  // namespace runner

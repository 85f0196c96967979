// runner/explain.h: the resolved plan of an experiment, for people.
#pragma once

#include <kj/string.h>

#include "runner/experiment.h"
#include "runner/loaded_runs.h"

namespace runner {

// Every value used, roles, layers with shapes, parameters and FLOPs, the rules of keys, their deal
// over servers with optimizer state, bytes of a step, and memory. Starts nothing, but looks at the
// records where the data set's size is not known.
kj::String explain(const LoadedExperiment& loaded);

// Of a sweep: its runs, each with its folder's name, then that of the first.
kj::String explain(const LoadedRuns& all);

}  // namespace runner

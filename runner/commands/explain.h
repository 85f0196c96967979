// runner/commands/explain.h: prints the resolved plan of an experiment for people.
#pragma once

#include <kj/string.h>

#include "runner/experiment/experiment.h"
#include "runner/experiment/step_traffic.h"
#include "runner/sweep/loaded_runs.h"

namespace runner {

// Returns the plan as text. It has every value used, the roles, the layers with their shapes,
// parameters and FLOPs, and the update rules of the keys. It says how the keys and their optimizer
// state are divided over the servers, how many bytes are sent per step, and how much memory the run
// needs. With `links`, it says how long the traffic of a step takes. Starts nothing, but reads the
// records if the data set's size is not known. Tables are aligned. With `columns`, the width of a
// terminal, columns without room are left out (a line below the table says so), and sentences are
// wrapped.
kj::String explain(const LoadedExperiment& loaded, const kj::Maybe<Links>& links = nullptr,
    kj::Maybe<uint> columns = nullptr);

// Returns the same for a sweep: its runs, each with its folder's name, then the plan of the first
// run.
kj::String explain(const LoadedRuns& all, const kj::Maybe<Links>& links = nullptr,
    kj::Maybe<uint> columns = nullptr);

}  // namespace runner

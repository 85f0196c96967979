// runner/commands/explain.h: prints the resolved plan of an experiment for people.
#pragma once

#include <kj/string.h>

#include "runner/experiment/experiment.h"
#include "runner/experiment/step_traffic.h"
#include "runner/sweep/loaded_runs.h"

namespace runner {

// Returns every value used, roles, layers with shapes, parameters and FLOPs, and update rules of
// keys. Also returns how keys are dealt over servers with optimizer state, the bytes of a step,
// memory, and with `links` the time of the traffic. Starts nothing, but reads the records if the
// data set's size is not known. Tables are aligned. With `columns`, the width of a terminal,
// columns without room are left out (a line below the table says so), and sentences are wrapped.
kj::String explain(const LoadedExperiment& loaded, const kj::Maybe<Links>& links = nullptr,
    kj::Maybe<uint> columns = nullptr);

// The same for a sweep: its runs, each with its folder's name, then the plan of the first run.
kj::String explain(const LoadedRuns& all, const kj::Maybe<Links>& links = nullptr,
    kj::Maybe<uint> columns = nullptr);

}  // namespace runner

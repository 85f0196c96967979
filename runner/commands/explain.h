// runner/commands/explain.h: the resolved plan of an experiment, for people.
#pragma once

#include <kj/string.h>

#include "runner/experiment/experiment.h"
#include "runner/experiment/step_traffic.h"
#include "runner/sweep/loaded_runs.h"

namespace runner {

// Every value used, roles, layers with shapes, parameters and FLOPs, the rules of keys, their deal
// over servers with optimizer state, bytes of a step, and memory; with links what these take for
// the bytes. Starts nothing, but looks at the records where the data set's size is not known.
// Tables are aligned. With `columns`, those of a terminal, columns for which there is no room are
// left out, which is said below the table, and sentences are broken into lines.
kj::String explain(const LoadedExperiment& loaded, const kj::Maybe<Links>& links = nullptr,
    kj::Maybe<uint> columns = nullptr);

// Of a sweep: its runs, each with its folder's name, then that of the first.
kj::String explain(const LoadedRuns& all, const kj::Maybe<Links>& links = nullptr,
    kj::Maybe<uint> columns = nullptr);

}  // namespace runner

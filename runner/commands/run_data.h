// runner/commands/run_data.h: prepares the images of an experiment's runs before any role starts.
#pragma once

#include "io/progress.h"
#include "runner/sweep/loaded_runs.h"
#include "runner/system/command_line.h"

namespace runner {

// Ends the program if the images of a run have no source. With `areThere`, also ends it if a run on
// this machine names a source that does not exist. `file` is the path of the experiment, for
// messages.
void requireSources(
    const LoadedRuns& all, kj::StringPtr file, CommandLine& commandLine, bool areThere);

// Whether the shapes of a run are known only after its data set's records are read.
bool mustLook(const LoadedRuns& all);

// Whether every run depends on nothing but its file: [data] determines the records, and no run
// starts from trained weights.
bool isAllKnown(const LoadedRuns& all);

// Reports all runs whose trained weights do not fit their network. If there are any, ends the
// program. Otherwise returns what the runs will load and skip, one line each. Checks only runs
// whose shapes are known without the records.
kj::Array<kj::String> checkStarts(
    const LoadedRuns& all, kj::StringPtr file, CommandLine& commandLine);

// Fetches and imports the data of all runs, with progress and warnings, so that no role waits for
// the download of another. Also makes the checks that need the records, and ends the program if one
// fails. Throws if the data of a run are not available. With `mayFail`, throws only if the data of
// all runs are unavailable. Otherwise sets `problem` of the runs whose data are unavailable.
void prepareData(
    LoadedRuns& all, kj::StringPtr file, CommandLine& commandLine, bool mayFail = false);

// Does the same for the one data set of `config`. Checks nothing else in its file.
void prepareData(const io::DataConfig& config, kj::StringPtr file, CommandLine& commandLine);

// Calls `work` with a function that shows its progress to the user. At an interrupt, the function
// throws, so that `work` removes what it has begun. Then the program ends.
void withProgress(kj::FunctionParam<void(io::Progress&)> work);

}  // namespace runner

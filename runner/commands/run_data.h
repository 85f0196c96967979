// runner/commands/run_data.h: the images of an experiment's runs, before any role starts.
#pragma once

#include "runner/sweep/loaded_runs.h"
#include "runner/system/command_line.h"

namespace runner {

// Ends the program if a run has no place to take its images from. `file` is the path of the
// experiment, for messages.
void requireSources(const LoadedRuns& all, kj::StringPtr file, CommandLine& commandLine);

// Whether shapes of a run are known from its data set's records alone.
bool mustLook(const LoadedRuns& all);

// Whether [data] of every run says what the records are.
bool areRecordsKnown(const LoadedRuns& all);

// Fetches and imports the data of all runs, with progress and warnings, so that no role waits for
// another's download. What only the records can tell of an experiment is checked here: if that is
// wrong, the program ends. Throws if the data of a run cannot be had. With `mayFail` it does so
// only if that is true of all runs, and leaves the reason with those of which it is.
void prepareData(
    LoadedRuns& all, kj::StringPtr file, CommandLine& commandLine, bool mayFail = false);

}  // namespace runner

// runner/tables/find_runs.h: finds the runs that the arguments of a command name.
#pragma once

#include <kj/array.h>
#include <kj/function.h>
#include <kj/string.h>

namespace runner {

// A run that the arguments of a command name.
struct FoundRun {
  kj::String folder;
  // The path of the run below the argument in which it was found. The argument itself if that is
  // the run's own folder.
  kj::String label;
};

// Returns `path` itself if it is the folder of a run, else all runs below it, in the order of
// visitRunTree(). Calls `leaveOut` as visitRunTree() does. Throws, and says what to do, if there is
// no run.
kj::Array<FoundRun> findRuns(
    kj::StringPtr path, kj::FunctionParam<void(kj::StringPtr reason)> leaveOut);

// Returns, in one sentence, which runs of the latest sweep in the folder `path` have no events.
// Null if there is no such run, or no sweep. Runs of earlier sweeps do not count: they may never
// begin, because the digest in a run's name changes with its data.
kj::Maybe<kj::String> notThereIn(kj::StringPtr path);

}  // namespace runner

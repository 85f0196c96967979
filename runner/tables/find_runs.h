// runner/tables/find_runs.h: which runs the words of a command mean.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

namespace runner {

// A run's folder, and its path below the folder that it was found in (the folder as it was named if
// that is the run itself).
struct FoundRun {
  kj::String folder;
  kj::String label;
};

// `path` itself if it is the folder of a run, else all runs below it, links (`last`) left out:
// those of a sweep in its order, then all others by name, 2 before 10. Throws, with the way out, if
// there is none.
kj::Array<FoundRun> findRuns(kj::StringPtr path);

// Which runs of the sweeps in the folder `path` have left no events yet, in one sentence. Null if
// there is no such run, or no sweep.
kj::Maybe<kj::String> notBegunIn(kj::StringPtr path);

}  // namespace runner

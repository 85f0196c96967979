// runner/sweep/stopped_run.h: what is left of a run that its sweep has given up.
#pragma once

#include <kj/string.h>

#include "runner/experiment/experiment.h"
#include "runner/logs/run_folder.h"

namespace runner {

using kj::uint;

// Why a run is given up.
struct Stop {
  uint epoch;         // at whose end it was decided, once all workers had validated
  kj::String rule;    // sweep.stop
  kj::String reason;  // one sentence
};

// Ends what the run in `folder` has written with the event `stopped`. Its roles must be gone. What
// they did after the epoch at which that was decided depends on how fast they were taken down, and
// is left out: everything in the folder is written anew from the events up to there, and the
// weights of a run that came to its end before are removed. A crash in the middle leaves a run that
// has not finished.
void recordStop(const HeldRunFolder& folder, const LoadedExperiment& loaded, const Stop& stop);

}  // namespace runner

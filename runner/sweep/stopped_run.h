// runner/sweep/stopped_run.h: writes the record of a run that its sweep has stopped.
#pragma once

#include <kj/string.h>

#include "runner/experiment/experiment.h"
#include "runner/logs/run_folder.h"
#include "runner/logs/run_lock.h"

namespace runner {

using kj::uint;

// Why a run is stopped.
struct Stop {
  uint epoch;         // the epoch at whose end this was decided, after all workers had validated
  kj::String rule;    // sweep.stop
  kj::String reason;  // one sentence
};

// Ends the record of the run in `folder` with the event `stopped`. Its roles must be gone. What
// they did after the deciding epoch depends on how fast they were taken down, and is left out.
// Everything in the folder is therefore written anew from the events up to that epoch. If the run
// came to its end before, its weights are removed. A crash in between leaves a run that has not
// finished.
void recordStop(const HeldRunFolder& folder, const LoadedExperiment& loaded, const Stop& stop);

}  // namespace runner

// runner/commands/resumed_run.h: the run with which `runner run --resume` goes on.
#pragma once

#include <kj/string.h>

#include "runner/experiment/experiment.h"
#include "runner/logs/run_folder.h"
#include "runner/logs/run_record.h"

namespace runner {

struct ResumedRun {
  RunFolder folder;
  RunRecord record;
};

// Returns the newest run of this experiment below `runs`: the newest of its name that has its
// digest. If no run has it, returns one of the same file that was killed before it had an event,
// and on which no process works. The record of such a run is empty. Null if there is no run of
// either kind. Throws if a run's events cannot be read.
kj::Maybe<ResumedRun> newestRunOf(const LoadedExperiment& loaded, kj::StringPtr runs);

// Writes the instructions that the run has computed with so far into the text of `loaded`, which
// roles read, unless the file names them.
void keepInstructionSet(LoadedExperiment& loaded, const RunRecord& record);

}  // namespace runner

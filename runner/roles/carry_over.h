// runner/roles/carry_over.h: continues a run with another number of workers or servers, in a new
// folder.
#pragma once

#include "runner/checkpoints/checkpoints.h"
#include "runner/experiment/experiment.h"
#include "runner/experiment/model_facts.h"
#include "runner/logs/run_folder.h"
#include "runner/logs/run_record.h"

namespace runner {

// Returns the position of the run of `before` at `point`, the end of an epoch.
Continued continuedAt(const Experiment& before, const ModelFacts& facts, const SavedPoint& point);

// Whether workers of the run in `folder` were lost, or joined, since --resume last changed its
// number of workers. The records that such a run has used need not be the first ones of the stream.
bool hasChangedMembers(const RunFolder& folder);

// Writes the beginning of the run of `now` to `to`, a new and empty folder: the events of the run
// of `before` in `from` up to `checkpoint`, the event `resized`, and a converted checkpoint.
// `checkpoint` ends an epoch, and the run of `now` continues from there: see continuedAt(). The run
// in `from` stays unchanged. Returns the content of the event. Throws with path and cause.
RunRecord::Resize carryOver(const LoadedExperiment& before, const RunFolder& from,
    const FoundCheckpoint& checkpoint, const LoadedExperiment& now, const RunFolder& to);

// Throws, and says what to do, if `experiment` continues another run, but its folder has no
// checkpoint. Such a run cannot begin again.
void requireBeginning(const Experiment& experiment, const RunFolder& folder,
    const kj::Maybe<FoundCheckpoint>& newest);

}  // namespace runner

// runner/roles/carry_over.h: lets a run go on with another number of workers or servers, in a new
// folder.
#pragma once

#include "runner/checkpoints/checkpoints.h"
#include "runner/experiment/experiment.h"
#include "runner/experiment/model_facts.h"
#include "runner/logs/run_folder.h"
#include "runner/logs/run_record.h"

namespace runner {

// Returns where the run of `before` stands at `point`, the end of an epoch.
Continued continuedAt(const Experiment& before, const ModelFacts& facts, const SavedPoint& point);

// Whether workers of the run in `folder` were lost, or joined, since --resume last changed its
// number of workers. The records that such a run has used need not be the first ones of the stream.
bool hasChangedMembers(const RunFolder& folder);

// Writes to `to`, which is new and empty, what `now` begins with: the events of the run of `before`
// in `from` up to `checkpoint`, the event `resized`, and a checkpoint of its own. `checkpoint` ends
// an epoch, and `now` goes on from there: see continuedAt(). The run in `from` stays as it is.
// Returns what the event says. Throws with path and cause.
RunRecord::Resize carryOver(const LoadedExperiment& before, const RunFolder& from,
    const FoundCheckpoint& checkpoint, const LoadedExperiment& now, const RunFolder& to);

// Throws, with the way out, if `experiment` has gone on from another run, but its folder has no
// checkpoint: it cannot begin again.
void requireBeginning(const Experiment& experiment, const RunFolder& folder,
    const kj::Maybe<FoundCheckpoint>& newest);

}  // namespace runner

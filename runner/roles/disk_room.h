// runner/roles/disk_room.h: finds out whether the disk has room for what a run is going to write.
#pragma once

#include "runner/experiment/experiment.h"
#include "runner/experiment/model_facts.h"
#include "runner/logs/run_folder.h"

namespace runner {

// The most that a run writes to its folder from now until the end of its next epoch, if the run
// also ends there.
struct NeededRoom {
  uint64_t weights_bytes;  // of weights.safetensors, and of best.safetensors if that is kept
  uint64_t logs_bytes;     // of events and log lines: an estimate
};
// Returns the room that this experiment needs.
NeededRoom neededRoom(const Experiment& experiment, const ModelFacts& facts);

// Returns why the disk of `folder` does not have the needed room, as a sentence that says what to
// do. Null if it has room, or if the file system does not report its free space. Ignores quotas,
// which may allow less.
kj::Maybe<kj::String> whyNoRoom(const RunFolder& folder, NeededRoom needed);

}  // namespace runner

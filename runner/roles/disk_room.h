// runner/roles/disk_room.h: whether the disk has room for what a run is going to write.
#pragma once

#include "runner/experiment/experiment.h"
#include "runner/experiment/model_facts.h"
#include "runner/logs/run_folder.h"

namespace runner {

// What a run writes to its folder from now until the end of its next epoch, at most, if it also
// ends there.
struct NeededRoom {
  uint64_t weights_bytes;  // of weights.safetensors
  uint64_t logs_bytes;     // of events and log lines: an estimate
};
NeededRoom neededRoom(const Experiment& experiment, const ModelFacts& facts);

// Why the disk of `folder` does not take that, as a sentence with the way out; null if it does, or
// if the file system does not say how much room it has. Looks at free blocks alone: a user's quota
// may be less.
kj::Maybe<kj::String> whyNoRoom(const RunFolder& folder, NeededRoom needed);

}  // namespace runner

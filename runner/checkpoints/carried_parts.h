// runner/checkpoints/carried_parts.h: what the roles of a job have kept, for a job with another
// number of workers or servers. Pure.
#pragma once

#include <kj/function.h>

#include "rpc/placement.h"
#include "runner/checkpoints/saved_part.h"

namespace runner {

using kj::uint;

// A job's workers, and how its parameters are dealt to its shards.
struct JobShape {
  uint workers;
  const rpc::Placement& placement;
};

// Returns the parts of the workers of a job that goes on as `now`. `parts` are those of all workers
// that there were, by rank, at the end of an epoch. They must outlive the result.
//
// What a worker has kept belongs to its rank. A rank that is new begins as a copy of worker 0. What
// compression has not sent is added up over all ranks, in their order, and worker 0 sends it. What
// else a worker keeps for compression, and its counts of traffic, begin with zeros in a new rank.
// `allHaveParameters`: every worker saves the parameters for other programs, not only the first.
kj::Array<SavedPart> carriedWorkers(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> parts,
    const JobShape& now, bool allHaveParameters);

// Returns the parts of the shards of a job that goes on as `now`, from those that it had as
// `before`. Each slice keeps what its shard has kept of it. A new rank has pushed as often as
// worker 0. `stateArrays` returns how many arrays of state the shards keep for a slice. The counts
// of shards that there are no more go to shard 0.
kj::Array<SavedPart> carriedShards(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> parts,
    const JobShape& before, const JobShape& now,
    kj::FunctionParam<uint(const rpc::Slice& slice)> stateArrays);

// Returns sentences on what carriedWorkers() adds up, drops and copies.
kj::Array<kj::String> carriedFacts(
    kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> parts, uint workersNow);

}  // namespace runner

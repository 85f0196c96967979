// runner/checkpoints/carried_parts.h: converts the saved state of a job's roles for another number
// of workers or servers. Pure.
#pragma once

#include <kj/function.h>

#include "rpc/placement.h"
#include "runner/checkpoints/saved_part.h"

namespace runner {

using kj::uint;

// Returns the parts of the `workersNow` workers that continue a job with the shards of `placement`.
// `parts` are the parts of all former workers, by rank, at the end of an epoch. They must outlive
// the result.
//
// Each rank that existed before keeps its part. A new rank begins with a copy of the part of worker
// 0, but its traffic counts and its compression state are zeros. Values that compression has not
// sent yet are summed over all former ranks, in rank order, and worker 0 will send them.
kj::Array<SavedPart> carriedWorkers(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> parts,
    uint workersNow, const rpc::Placement& placement);

// Returns the parts for the shards of placement `now`, made from `parts`, those of placement
// `before`. Each slice keeps its state. `stateArrays` returns how many arrays of state the shards
// keep for a slice. The counts of shards that no longer exist are added to those of shard 0.
kj::Array<SavedPart> carriedShards(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> parts,
    const rpc::Placement& before, const rpc::Placement& now,
    kj::FunctionParam<uint(const rpc::Slice& slice)> stateArrays);

// Returns sentences for the user about what carriedWorkers() adds up, drops and copies.
kj::Array<kj::String> carriedFacts(
    kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> parts, uint workersNow);

}  // namespace runner

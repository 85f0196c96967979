// runner/checkpoints/carried_parts.h: what the roles of a job have kept, for a job with another
// number of workers or servers. Pure.
#pragma once

#include <kj/function.h>

#include "rpc/placement.h"
#include "runner/checkpoints/saved_part.h"

namespace runner {

using kj::uint;

// Returns the parts of `workersNow` workers with which a job goes on, with the shards of
// `placement`. `parts` are the parts of all former workers, by rank, at the end of an epoch. They
// must outlive the result.
//
// Each rank that existed before keeps its part. A new rank begins with a copy of the part of worker
// 0, but its counts of traffic and what it keeps for compression are zeros. Values that compression
// has not sent yet are added up over all former ranks, in rank order, and worker 0 will send them.
kj::Array<SavedPart> carriedWorkers(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> parts,
    uint workersNow, const rpc::Placement& placement);

// Returns the parts of the shards that a job has `now`, from those that it had `before`. Each slice
// keeps what its shard has kept of it. `stateArrays` returns how many arrays of state the shards
// keep for a slice. Shard 0 gets the counts of shards that no longer exist.
kj::Array<SavedPart> carriedShards(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> parts,
    const rpc::Placement& before, const rpc::Placement& now,
    kj::FunctionParam<uint(const rpc::Slice& slice)> stateArrays);

// Returns sentences on what carriedWorkers() adds up, drops and copies.
kj::Array<kj::String> carriedFacts(
    kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> parts, uint workersNow);

}  // namespace runner

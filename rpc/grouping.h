// rpc/grouping.h: which slices travel in one call. Pure.
#pragma once

#include <kj/array.h>
#include <kj/function.h>

#include "rpc/placement.h"

namespace rpc {

// Besides its bytes, a call costs both ends together about 40 µs of CPU time; 256 KiB there and
// back cost some 500 µs. So larger calls would save next to nothing, and their first slice would
// wait longer for their last.
constexpr uint64_t CALL_BYTES_MAX = 256 << 10;

// Cap'n Proto refuses messages of more than 512 segments, and a payload that is sent from where it
// lies is a segment.
constexpr uint CALL_SLICES_MAX = 256;

// What one call carries.
struct Group {
  uint shard;                          // the server that holds all of it
  kj::ArrayPtr<const SliceId> slices;  // ascending; points into the placement
};

// Calls `visit` with the groups of the slices of `range`, server by server, in ascending order.
// Each has at most CALL_BYTES_MAX of values and CALL_SLICES_MAX slices; a slice of more bytes than
// that is a group by itself.
void forEachGroup(
    const Placement& placement, SliceRange range, kj::FunctionParam<void(const Group&)> visit);

}  // namespace rpc

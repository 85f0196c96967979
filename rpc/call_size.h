// rpc/call_size.h: how much a worker says to a server in one call.
#pragma once

#include <kj/common.h>

#include <cstdint>

namespace rpc {

using kj::uint;

// Besides its bytes, a call costs both ends together about 40 µs of CPU time; 256 KiB there and
// back cost some 500 µs. So larger calls would save next to nothing, and their first slice would
// wait longer for their last.
constexpr uint64_t CALL_BYTES_MAX = 256 << 10;

// Cap'n Proto refuses messages of more than 512 segments, and a payload that is sent from where it
// lies is a segment.
constexpr uint CALL_SLICES_MAX = 256;

}  // namespace rpc

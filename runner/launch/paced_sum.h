// runner/launch/paced_sum.h: the checksum of files that are too large for one turn of an event
// loop.
#pragma once

#include <kj/async.h>
#include <kj/timer.h>

#include "io/datasets/data_copy.h"

namespace runner {

// Returns the SHA-256 of all bytes of `files`, in hexadecimal. The event loop keeps running
// meanwhile, so that this process does not count as silent. All arguments must outlive the promise.
kj::Promise<kj::String> pacedSum(const io::PackedFiles& files, kj::Timer& timer);

}  // namespace runner

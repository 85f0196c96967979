// runner/system/two_pipes.h: two pipes as one stream, for a protocol over standard input and
// output.
#pragma once

#include <kj/async-io.h>

namespace runner {

// Returns the stream that reads from `input` and writes to `output`.
kj::Own<kj::AsyncIoStream> joinPipes(
    kj::Own<kj::AsyncInputStream> input, kj::Own<kj::AsyncOutputStream> output);

}  // namespace runner

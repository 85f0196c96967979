// runner/system/line_stream.h: reads a pipe line by line on an event loop.
#pragma once

#include <kj/async-io.h>
#include <kj/function.h>

namespace runner {

// Calls `take` with each line of `input`, without its newline, as soon as the line has arrived. The
// last line needs no newline. A line of more than 16 MiB comes in pieces. Resolves at the end of
// the input. Rejects with what `take` throws. `input` must outlive the promise.
kj::Promise<void> readLines(kj::AsyncInputStream& input, kj::Function<void(kj::StringPtr)> take);

}  // namespace runner

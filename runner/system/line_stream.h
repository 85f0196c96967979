// runner/system/line_stream.h: reads a pipe line by line on an event loop.
#pragma once

#include <kj/async-io.h>
#include <kj/function.h>

namespace runner {

// Calls `take` with each line of `input`, without its newline, as soon as the line has arrived. The
// last line needs no newline. A line of more than 16 MiB comes in pieces. Resolves at the end of
// the input. Rejects with what `take` throws. `input` must outlive the promise.
//
// With `allTaken`, waits for the promise that `allTaken` returns before it reads more. So lines do
// not pile up behind a slow receiver: the writer waits instead.
kj::Promise<void> readLines(kj::AsyncInputStream& input, kj::Function<void(kj::StringPtr)> take,
    kj::Maybe<kj::Function<kj::Promise<void>()>> allTaken = nullptr);

}  // namespace runner

// runner/commands/course.h: an event loop, and the signals that interrupt what it waits for.
#pragma once

#include <kj/async-io.h>
#include <kj/function.h>

namespace runner {

struct Course {
  // Captures the signals and child exits. Call it once per process.
  Course();

  kj::Array<int> signals;
  kj::AsyncIoContext io;

  // Returns false if a signal comes before `promise` resolves. In that case, calls `interrupted`
  // with the reason, and then drops `promise`, which cancels its work.
  //
  // With `wrapUp`, first waits for the promise that `wrapUp` returns, or for a second signal.
  // Meanwhile `promise` continues, and if it resolves, the result is true.
  bool endsUninterrupted(kj::Promise<void> promise, kj::Function<void(kj::StringPtr)> interrupted,
      kj::Maybe<kj::Function<kj::Promise<void>()>> wrapUp = nullptr);

private:
  // Resolves at the next signal, to its number.
  kj::Promise<int> nextSignal();
};

}  // namespace runner

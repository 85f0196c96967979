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

  // Returns false if a signal comes before `promise` resolves. Calls `interrupted` with the reason
  // in that case, and then drops `promise`, which takes down its work.
  //
  // With `wrapUp`, first waits for the promise that it returns, but not beyond a second signal.
  // `promise` goes on meanwhile, and if it resolves, the result is true.
  bool endsUninterrupted(kj::Promise<void> promise, kj::Function<void(kj::StringPtr)> interrupted,
      kj::Maybe<kj::Function<kj::Promise<void>()>> wrapUp = nullptr);

private:
  // Resolves at the next signal, to its number.
  kj::Promise<int> nextSignal();
};

}  // namespace runner

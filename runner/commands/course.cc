#include "runner/commands/course.h"

#include <kj/async-unix.h>

#include "runner/system/interrupts.h"

namespace runner {

namespace {

kj::Array<int> capturedSignals() {
  auto signals = interrupts();
  for (int signal: signals) kj::UnixEventPort::captureSignal(signal);
  kj::UnixEventPort::captureChildExit();
  return signals;
}

}  // namespace

Course::Course(): signals(capturedSignals()), io(kj::setupAsyncIo()) {}

kj::Promise<int> Course::nextSignal() {
  kj::Promise<int> next = kj::NEVER_DONE;
  for (int signal: signals) {
    auto received =
        io.unixEventPort.onSignal(signal).then([](siginfo_t&& info) { return info.si_signo; });
    // The signal must be noticed immediately, not only once the other promises have been dropped.
    next = next.exclusiveJoin(received.eagerlyEvaluate(nullptr));
  }
  return next;
}

bool Course::endsUninterrupted(kj::Promise<void> promise,
    kj::Function<void(kj::StringPtr)> interrupted,
    kj::Maybe<kj::Function<kj::Promise<void>()>> wrapUp) {
  auto ended = promise.then([]() { return true; });
  auto interrupt = nextSignal()
                       .then([&](int signal) -> kj::Promise<void> {
                         interrupted(reasonOfInterrupt(signal));
                         KJ_IF_MAYBE(work, wrapUp)
                           return (*work)().exclusiveJoin(nextSignal().ignoreResult());
                         return kj::READY_NOW;
                       })
                       .then([]() { return false; });
  return ended.exclusiveJoin(interrupt.eagerlyEvaluate(nullptr)).wait(io.waitScope);
}

}  // namespace runner

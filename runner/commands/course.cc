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

bool Course::endsUninterrupted(
    kj::Promise<void> promise, kj::Function<void(kj::StringPtr)> interrupted) {
  auto ended = promise.then([]() { return true; });
  for (int signal: signals) {
    auto interrupt = io.unixEventPort.onSignal(signal).then([&interrupted](siginfo_t&& info) {
      interrupted(reasonOfInterrupt(info.si_signo));
      return false;
    });
    // The signal must be noticed at once, not only when the other promises are gone.
    ended = ended.exclusiveJoin(interrupt.eagerlyEvaluate(nullptr));
  }
  return ended.wait(io.waitScope);
}

}  // namespace runner

// rpc/wire/running_time.h: time-outs that count only the time in which this process ran.
#pragma once

#include <kj/timer.h>

namespace rpc {

// Measures how long somebody has been silent while this thread could have heard something.
//
// A process that is stopped (Ctrl-Z, SIGSTOP, a frozen container) or blocked hears nobody, so that
// time says nothing about the others. It shows as a long gap between two looks at the clock: of
// any gap only the first GAP_MAX counts. Whoever judges silence must therefore look often.
class RunningTime {
public:
  // How often to look.
  static constexpr kj::Duration LOOK_INTERVAL = 200 * kj::MILLISECONDS;
  // What counts of a longer gap: enough for a late timer on a busy machine.
  static constexpr kj::Duration GAP_MAX = 2 * LOOK_INTERVAL;

  // `timer` must outlive this object.
  explicit RunningTime(kj::Timer& timer): timer(timer), looked(timer.now()) {}
  KJ_DISALLOW_COPY(RunningTime);

  // Looks at the clock. Returns the running time since construction.
  kj::Duration passed();

  // Resolves when passed() has reached `end`, and looks often until then. This object must outlive
  // the promise.
  kj::Promise<void> until(kj::Duration end);

private:
  kj::Timer& timer;
  kj::TimePoint looked;
  kj::Duration sum = 0 * kj::NANOSECONDS;
};

}  // namespace rpc

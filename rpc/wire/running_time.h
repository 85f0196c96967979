// rpc/wire/running_time.h: time-outs that count only the time in which this process ran.
#pragma once

#include <kj/timer.h>

namespace rpc {

// Measures how long others have been silent while this thread could have heard them.
//
// A process that is stopped (Ctrl-Z, SIGSTOP, a frozen container) or blocked receives nothing. That
// time says nothing about the others, so it does not count. It shows as a long gap between two
// readings of the clock. Only the first GAP_MAX of any gap counts, so the clock must be read often.
class RunningTime {
public:
  // How often to read the clock.
  static constexpr kj::Duration LOOK_INTERVAL = 200 * kj::MILLISECONDS;
  // How much of a longer gap counts. This is enough for a late timer on a busy machine.
  static constexpr kj::Duration GAP_MAX = 2 * LOOK_INTERVAL;

  // `timer` must outlive this object.
  explicit RunningTime(kj::Timer& timer): timer(timer), looked(timer.now()) {}
  KJ_DISALLOW_COPY(RunningTime);

  // Reads the clock. Returns the running time since construction.
  kj::Duration passed();

  // Resolves when passed() has reached `end`, and reads the clock often until then. This object
  // must outlive the promise.
  kj::Promise<void> until(kj::Duration end);

private:
  kj::Timer& timer;
  kj::TimePoint looked;
  kj::Duration sum = 0 * kj::NANOSECONDS;
};

}  // namespace rpc

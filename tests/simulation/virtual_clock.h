// tests/simulation/virtual_clock.h: the time of a simulated job. It advances only when nothing else
// is left to do.
#pragma once

#include <kj/async.h>
#include <kj/timer.h>

namespace simulation {

// The event port of the thread. While it exists, the clocks of the whole process show its time: it
// replaces the C library's clock_gettime(). One at a time.
class VirtualClock final: public kj::EventPort {
public:
  VirtualClock();
  ~VirtualClock() noexcept(false);
  KJ_DISALLOW_COPY(VirtualClock);

  kj::Timer& timer() { return time; }
  kj::TimePoint now() const { return time.now(); }
  // Moves the clock with the date, possibly backwards.
  void moveDate(kj::Duration by);
  // From this moment on, wait() throws, because a job that is not over by then hangs.
  void endAt(kj::TimePoint end) { last = end; }

  // For the event loop: advances to the next moment at which something happens. Throws if there is
  // none, because then nothing will ever happen.
  bool wait() override;
  bool poll() override;
  void wake() const override { woken = true; }

private:
  void goTo(kj::TimePoint moment);

  kj::TimerImpl time;
  kj::TimePoint last;
  mutable bool woken = false;
};

// Returns the time that the machine's own clock shows, in seconds.
double realTime_s();

}  // namespace simulation

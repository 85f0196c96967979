// runner/roles/clock_offset.h: how far the clocks of two machines are apart.
#pragma once

#include <kj/time.h>

namespace runner {

// By which to move times of this machine's monotonic clock so that they are those of another one's.
// A question and its answer, which holds the other's time, bound it: the other read its clock
// somewhere between. Of many, the quickest bounds it best; its middle is off by half its time at
// most (Cristian 1989).
class ClockOffset {
public:
  // An answer that came at `heard` to what was asked at `asked` says `other`.
  void hear(kj::TimePoint asked, kj::TimePoint heard, kj::TimePoint other) {
    if (heard - asked >= quickest) return;
    quickest = heard - asked;
    best = other - (asked + quickest / 2);
  }

  kj::Duration get() const { return best; }

private:
  kj::Duration quickest = kj::maxValue;
  kj::Duration best = 0 * kj::NANOSECONDS;
};

}  // namespace runner

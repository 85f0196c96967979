// runner/roles/clock_offset.h: measures the offset between the clocks of two machines.
#pragma once

#include <kj/time.h>

namespace runner {

// Add the offset to times of this machine's monotonic clock to get those of another machine's
// clock. Each answer to a question has the other machine's time, which was read at some moment
// between question and answer. The estimate assumes that it was read halfway between the two. The
// error is at most half of the round-trip time, so the quickest answer counts (Cristian 1989).
class ClockOffset {
public:
  // Takes an answer: the question was sent at `asked`, and the answer `other` arrived at `heard`.
  void hear(kj::TimePoint asked, kj::TimePoint heard, kj::TimePoint other) {
    if (heard - asked >= quickest) return;
    quickest = heard - asked;
    best = other - (asked + quickest / 2);
  }

  // Returns the offset. 0 before the first answer.
  kj::Duration get() const { return best; }

private:
  kj::Duration quickest = kj::maxValue;
  kj::Duration best = 0 * kj::NANOSECONDS;
};

}  // namespace runner

// runner/logs/verb_times.h: a worker's time, by the five verbs of a step.
#pragma once

#include <kj/time.h>

namespace runner {

// Seconds of the compute thread since the last reset, by verb.
struct VerbTimes {
  double read_s = 0;
  double forward_s = 0;
  double backward_s = 0;
  double push_s = 0;
  double pull_s = 0;

  double all_s() const { return read_s + forward_s + backward_s + push_s + pull_s; }
};

// A run is called reader-bound if its steps wait for records for at least this part of their time.
constexpr double READER_BOUND_MIN = 0.1;

// Measures the time between two calls.
class Stopwatch {
public:
  Stopwatch(): clock(kj::systemPreciseMonotonicClock()), begin(clock.now()) {}

  double elapsed_s() const { return (clock.now() - begin) / kj::NANOSECONDS * 1e-9; }
  // Returns the seconds since the last restart, and restarts.
  double restart_s() {
    double passed_s = elapsed_s();
    begin = clock.now();
    return passed_s;
  }
  // Continues as if the last restart was `seconds` seconds ago.
  void goOnFrom(double seconds) { begin = clock.now() - int64_t(seconds * 1e9) * kj::NANOSECONDS; }
  // Returns when it was last restarted.
  kj::TimePoint begun() const { return begin; }
  // Adds the time since the last restart to `verb_s`, and restarts.
  void chargeTo(double& verb_s) { verb_s += restart_s(); }

private:
  const kj::MonotonicClock& clock;
  kj::TimePoint begin;
};

}  // namespace runner

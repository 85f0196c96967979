// runner/launch/progress.h: shows the progress of a run or a sweep, on lines that are rewritten in
// place.
#pragma once

#include <kj/common.h>
#include <kj/string.h>
#include <kj/time.h>

namespace runner {

using kj::uint;

// The progress of a run, and its latest figures.
struct Progress {
  // The epoch in progress, from 1, and how many epochs the run has. 0 if that is not known.
  uint epoch;
  uint epochs;

  // The steps done, and how many steps the run has. While it starts, none is done.
  uint64_t step;
  uint64_t steps;

  // The speed of all workers together. Null until it has been measured.
  kj::Maybe<double> imagesPerS;

  // The latest loss and accuracy. Null until there are any.
  kj::Maybe<double> loss;
  kj::Maybe<double> accuracy;

  // Seconds until the end of the run. Null if that is not known.
  kj::Maybe<double> eta_s;

  // Whether the epoch's steps are done, and the workers validate.
  bool validating = false;

  // The part of the epoch's steps, from 0 to 1, in which workers waited for records.
  double readShare = 0;

  // The index of a worker that has made no progress for `stuck_s` seconds, although it waits for no
  // other role.
  uint stuckWorker = 0;
  uint stuck_s = 0;
};

// Returns `epoch 3/10  step 1170/3900  812 images/s  loss 0.412  accuracy 0.861  ETA 1:23`, without
// the parts that are null. If workers wait for records for a tenth of the time or more, the speed
// is `812 images/s (reader-bound: 31 %)`. If a worker is stuck, `worker 1: no progress for 45 s`
// replaces it. During validation: `epoch 3/10  validating  loss 0.412  accuracy 0.861`. While the
// run starts: `starting  worker 1: no progress for 45 s`.
kj::String progressText(const Progress& progress);

// Returns `unpacking images, bytes: 64,546,447 of 129,050,204 (50 %)`. A `total` of 0 is not known.
kj::String progressText(kj::StringPtr what, uint64_t done, uint64_t total);

// The progress of work in several consecutive parts, with the remaining time of the present part.
class WorkProgress {
public:
  // `clock` must outlive it.
  explicit WorkProgress(const kj::MonotonicClock& clock = kj::systemPreciseMonotonicClock())
      : clock(clock) {}

  // Returns progressText(). When the part `what` has lasted some seconds, appends `  ETA 4:10`: the
  // time until the part ends, if it continues at its mean speed since the first call for it.
  kj::String text(kj::StringPtr what, uint64_t done, uint64_t total);

private:
  const kj::MonotonicClock& clock;
  kj::String part;
  kj::TimePoint begun = kj::origin<kj::TimePoint>();
  uint64_t first = 0;  // `done` in the first call for this part
};

// Returns `sweep 3/12 done  1 failed  ETA 4:10`. `done` counts all runs that have ended, including
// those that failed.
kj::String progressText(uint done, uint runs, uint failed, kj::Maybe<double> eta_s);

// Shows text on one line of a terminal, and rewrites it in place. If `fd` is not a terminal, or its
// cursor cannot be moved (TERM=dumb), it writes plain lines instead: the first one immediately,
// then at most one every 10 s. Call clear() before printing anything else to the same terminal. The
// next show() brings the line back. Ignores write errors, because a run must continue if nobody
// watches it. For one thread.
class ProgressLine {
public:
  // Writes to `fd`, which the caller keeps. `clock` must outlive the line.
  explicit ProgressLine(
      int fd, const kj::MonotonicClock& clock = kj::systemPreciseMonotonicClock());

  // Clears the line.
  ~ProgressLine() noexcept(false);
  KJ_DISALLOW_COPY(ProgressLine);

  // Replaces the line by `text` (UTF-8), fitted() to the terminal's present width. Does so at most
  // 20 times per second. Drops text that comes faster, unless no line is visible. Drops all text
  // while isOutputBehind().
  void show(kj::StringPtr text);

  // Shows several lines, one below the other. A terminal shows as many as it has room for, and
  // always the last one. In plain mode, only the last one is written.
  void show(kj::ArrayPtr<const kj::String> texts);

  // Removes the lines, and leaves the cursor at the start of the first. Does nothing if there are
  // no lines.
  void clear();

  bool isInPlace() const { return inPlace; }

private:
  int fd;
  const kj::MonotonicClock& clock;
  bool inPlace;
  uint visible = 0;  // how many lines are on the terminal
  kj::Maybe<kj::TimePoint> written;
};

}  // namespace runner

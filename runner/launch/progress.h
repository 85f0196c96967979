// runner/launch/progress.h: lines rewritten in place that tell how far a run, or a sweep of runs,
// is.
#pragma once

#include <kj/common.h>
#include <kj/string.h>
#include <kj/time.h>

namespace runner {

using kj::uint;

// How far a run is, and how well it does.
struct Progress {
  // The epoch in progress, from 1, and how many the run has: 0 if that is not known.
  uint epoch;
  uint epochs;

  // Steps done of all the run's steps.
  uint64_t step;
  uint64_t steps;

  // Of all workers together; null while it has not been measured.
  kj::Maybe<double> imagesPerS;

  // Latest loss and accuracy; null while there is none.
  kj::Maybe<double> loss;
  kj::Maybe<double> accuracy;

  // Seconds that the rest will take; null while nobody can tell.
  kj::Maybe<double> eta_s;

  // The epoch's steps are done, and the workers validate.
  bool validating = false;
};

// `epoch 3/10  step 1170/3900  812 images/s  loss 0.412  accuracy 0.861  ETA 1:23`, without the
// parts that are null. `epoch 3/10  validating  loss 0.412  accuracy 0.861` during validation.
kj::String progressText(const Progress& progress);

// `unpacking images, bytes: 64,546,447 of 129,050,204 (50 %)`; `total` 0 is not known.
kj::String progressText(kj::StringPtr what, uint64_t done, uint64_t total);

// `sweep 3/12 done  1 failed  ETA 4:10`. `done` are those that have ended, the failed ones
// included.
kj::String progressText(uint done, uint runs, uint failed, kj::Maybe<double> eta_s);

// Shows text on one line of a terminal, again and again in place. Where `fd` is not a terminal or
// its cursor cannot be moved (TERM=dumb), it writes plain lines instead, the first at once and then
// at most one in 10 s. Whoever prints something else to the same terminal calls clear() before; the
// next show() brings the line back. Errors of writing are ignored: a run does not end because
// nobody watches. For one thread.
class ProgressLine {
public:
  // Writes to `fd`, which stays the caller's. `clock` must outlive the line.
  explicit ProgressLine(
      int fd, const kj::MonotonicClock& clock = kj::systemPreciseMonotonicClock());

  // Clears it.
  ~ProgressLine() noexcept(false);
  KJ_DISALLOW_COPY(ProgressLine);

  // Replaces the line by `text` (UTF-8), fitted() to the terminal's width of this moment. At most
  // 20 times a second; text that comes faster is dropped, unless the line is not there.
  void show(kj::StringPtr text);

  // The same with several lines, one under the other, of which a terminal shows as many as it has
  // room for, the last one always. Where it writes plain lines, it writes only the last one.
  void show(kj::ArrayPtr<const kj::String> texts);

  // Takes the lines away, the cursor at the start of the first. Does nothing where there is none.
  void clear();

  bool isInPlace() const { return inPlace; }

private:
  int fd;
  const kj::MonotonicClock& clock;
  bool inPlace;
  uint visible = 0;  // lines that are there
  kj::Maybe<kj::TimePoint> written;
};

}  // namespace runner

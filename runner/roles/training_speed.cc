#include "runner/roles/training_speed.h"

#include <math.h>

namespace runner {

void TrainingSpeed::setValidating(kj::TimePoint now, bool validates) {
  countUntil(now);
  validating = validates;
}

void TrainingSpeed::countUntil(kj::TimePoint now) {
  if (!validating) trained_s += (now - counted) / kj::NANOSECONDS * 1e-9;
  counted = now;
}

void TrainingSpeed::add(kj::TimePoint now, double newImages) {
  countUntil(now);
  double newSeconds = trained_s;
  trained_s = 0;
  // Before the first images, the workers spend an unknown time on preparations.
  if (!hasBegun) {
    hasBegun = newImages > 0;
    return;
  }
  // The speed is smoothed over about five seconds, because a step may take longer than a second.
  double kept = pow(0.8, newSeconds);
  images = images * kept + newImages;
  seconds = seconds * kept + newSeconds;
}

}  // namespace runner

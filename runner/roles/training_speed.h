// runner/roles/training_speed.h: measures the speed at which the workers of a job train.
#pragma once

#include <kj/time.h>

namespace runner {

// The speed at which all workers train, without the time of validations. Older measurements have
// less weight. For one thread.
class TrainingSpeed {
public:
  // From `begin` on, the workers prepare to train.
  explicit TrainingSpeed(kj::TimePoint begin): counted(begin) {}

  // From `now` on, the workers validate, or train if `validating` is false.
  void setValidating(kj::TimePoint now, bool validates);
  bool isValidating() const { return validating; }
  // At `now`, the workers have trained on `newImages` images since the last call. The measurement
  // starts with the first call that has images.
  void add(kj::TimePoint now, double newImages);
  // Returns 0 before the first measurement.
  double images_per_s() const { return seconds == 0 ? 0 : images / seconds; }

private:
  // Adds the time until `now` to `trained_s`, unless the workers were validating.
  void countUntil(kj::TimePoint now);

  double images = 0;
  double seconds = 0;
  bool hasBegun = false;
  kj::TimePoint counted;  // when countUntil() was called last
  double trained_s = 0;   // time that is not in `seconds` yet
  bool validating = false;
};

}  // namespace runner

#include "runner/roles/training_speed.h"

#include <doctest/doctest.h>

namespace runner {
namespace {

constexpr auto BEGIN = kj::origin<kj::TimePoint>();

TEST_CASE("TrainingSpeed: leaves out the preparation before the first images") {
  TrainingSpeed speed(BEGIN);
  speed.add(BEGIN + 5 * kj::SECONDS, 0);
  speed.add(BEGIN + 60 * kj::SECONDS, 10);
  CHECK(speed.images_per_s() == 0);
  speed.add(BEGIN + 61 * kj::SECONDS, 100);
  CHECK(speed.images_per_s() == doctest::Approx(100));
}

TEST_CASE("TrainingSpeed: leaves out validations, even if they begin and end between two calls") {
  TrainingSpeed speed(BEGIN);
  speed.add(BEGIN, 1);
  speed.setValidating(BEGIN + 1 * kj::SECONDS, true);
  CHECK(speed.isValidating());
  speed.setValidating(BEGIN + 4 * kj::SECONDS, false);
  CHECK_FALSE(speed.isValidating());
  speed.add(BEGIN + 5 * kj::SECONDS, 100);
  CHECK(speed.images_per_s() == doctest::Approx(50));
}

TEST_CASE("TrainingSpeed: newer measurements have more weight") {
  TrainingSpeed speed(BEGIN);
  speed.add(BEGIN, 1);
  speed.add(BEGIN + 1 * kj::SECONDS, 100);
  speed.add(BEGIN + 2 * kj::SECONDS, 200);
  CHECK(speed.images_per_s() == doctest::Approx((0.8 * 100 + 200) / 1.8));
}

}  // namespace
}  // namespace runner

#include "runner/roles/clock_offset.h"

#include <doctest/doctest.h>

namespace runner {
namespace {

kj::TimePoint at(int64_t ms) {
  return kj::origin<kj::TimePoint>() + ms * kj::MILLISECONDS;
}

TEST_CASE("ClockOffset: assumes that the quickest answer was given halfway") {
  ClockOffset offset;
  CHECK(offset.get() == 0 * kj::MILLISECONDS);
  offset.hear(at(100), at(120), at(1115));
  CHECK(offset.get() == 1005 * kj::MILLISECONDS);
  offset.hear(at(200), at(202), at(1202));
  CHECK(offset.get() == 1001 * kj::MILLISECONDS);
  offset.hear(at(300), at(350), at(1301));
  CHECK(offset.get() == 1001 * kj::MILLISECONDS);
}

TEST_CASE("ClockOffset: the other clock may be behind") {
  ClockOffset offset;
  offset.hear(at(1000), at(1010), at(5));
  CHECK(offset.get() == -1000 * kj::MILLISECONDS);
}

}  // namespace
}  // namespace runner

#include "configs/language/limits.h"

#include <doctest/doctest.h>

#include <cmath>

namespace configs {
namespace {

TEST_CASE("typeOf: names the type with its limits, or only the type if there are none") {
  CHECK(typeOf(IntegerLimits{}) == "integer");
  CHECK(typeOf(IntegerLimits{.atLeast = 1}) == "integer ≥ 1");
  CHECK(typeOf(IntegerLimits{.atMost = -2}) == "integer ≤ -2");
  CHECK(typeOf(IntegerLimits{.atLeast = 0, .atMost = 9}) == "integer 0 … 9");
  CHECK(typeOf(RealLimits{}) == "number");
  CHECK(typeOf(RealLimits{.above = 0}) == "number > 0");
  CHECK(typeOf(RealLimits{.atLeast = 0.5}) == "number ≥ 0.5");
  CHECK(typeOf(RealLimits{.above = 0, .atMost = 1}) == "number > 0 and ≤ 1");
  CHECK(typeOf(RealLimits{.below = 1e-5}) == "number < 1e-05");
  CHECK(typeOf(RealLimits{.atLeast = -1, .atMost = 1}) == "number -1 … 1");
}

TEST_CASE("allows: keeps the bounds, and refuses numbers that are not finite") {
  CHECK(allows(IntegerLimits{.atLeast = 1, .atMost = 3}, 3));
  CHECK(!allows(IntegerLimits{.atLeast = 1, .atMost = 3}, 4));
  CHECK(!allows(RealLimits{.above = 0}, 0));
  CHECK(allows(RealLimits{.atLeast = 0}, 0));
  CHECK(!allows(RealLimits{.below = 1}, 1));
  CHECK(allows(RealLimits{.atMost = 1}, 1));
  CHECK(!allows(RealLimits{}, std::nan("")));
  CHECK(!allows(RealLimits{}, kj::inf()));
  CHECK(!allows(RealLimits{}, -kj::inf()));
}

TEST_CASE("clamp and lowest: return an allowed number for all limits") {
  const double values[] = {-kj::inf(), -7, 0, 0.5, 3, kj::inf(), std::nan("")};
  const RealLimits all[] = {{}, {.above = 0}, {.above = 2}, {.atLeast = -1}, {.below = 0},
      {.atMost = -3}, {.above = 0, .below = 1}, {.atLeast = 0, .below = 1},
      {.above = 0, .atMost = 1e-9}, {.atLeast = 2, .atMost = 2}};
  for (auto& limits: all) {
    CAPTURE(typeOf(limits).cStr());
    CHECK(allows(limits, lowest(limits)));
    for (double value: values) CHECK(allows(limits, clamp(limits, value)));
  }
  CHECK(clamp(RealLimits{.atLeast = 0, .atMost = 4}, 9) == 4);
  CHECK(clamp(RealLimits{.atLeast = 0, .atMost = 4}, 3) == 3);
  CHECK(clamp(IntegerLimits{.atLeast = 0, .atMost = 4}, 9) == 4);
  CHECK(lowest(IntegerLimits{}) == 0);
  CHECK(lowest(IntegerLimits{.atMost = -3}) == -3);
  CHECK(lowest(IntegerLimits{.atLeast = 3}) == 3);
}

}  // namespace
}  // namespace configs

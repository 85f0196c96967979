#include "runner/report/chart_axis.h"

#include <doctest/doctest.h>

#include <cmath>

namespace runner {
namespace {

kj::String ticksOf(kj::ArrayPtr<const double> values, AxisOptions options = {}) {
  auto axis = axisOver(values, options);
  CHECK(axis.low < axis.high);
  auto labels = KJ_MAP(tick, axis.ticks) {
    return axis.label(tick);
  };
  return kj::strArray(labels, " ");
}

TEST_CASE("axisOver: ticks are round numbers within the values") {
  CHECK(ticksOf({0.83, 0.93}) == "0.84 0.86 0.88 0.90 0.92");
  CHECK(ticksOf({0.0, 1.0}) == "0.0 0.2 0.4 0.6 0.8 1.0");
  CHECK(ticksOf({3.0, 12400.0}) == "5k 10k");
  CHECK(ticksOf({0.0, 900000.0}) == "0 200k 400k 600k 800k");
  CHECK(ticksOf({0.0, 1000000.0}) == "0 0.2M 0.4M 0.6M 0.8M 1.0M");
  CHECK(ticksOf({-3.0, 7.0}) == "-2 0 2 4 6");
  CHECK(ticksOf({1.0, 4.0}, {.whole = true}) == "1 2 3 4");
  CHECK(ticksOf({1.0, 2.0}, {.whole = true}) == "1 2");
}

TEST_CASE("axisOver: ticks of huge and of tiny numbers have few digits") {
  CHECK(ticksOf({0.0, 6.74e32}, {.rounded = true}) == "0 2e32 4e32 6e32 8e32");
  CHECK(ticksOf({1e20, 3e20}, {.rounded = true}) == "1e20 1.5e20 2e20 2.5e20 3e20");
  CHECK(ticksOf({1e-7, 3e-7}, {.rounded = true}) == "1e-7 1.5e-7 2e-7 2.5e-7 3e-7");
}

TEST_CASE("axisOver: a rounded axis begins and ends at a tick, and includes 0 if requested") {
  auto axis = axisOver({0.83, 0.93}, {.rounded = true});
  CHECK(axis.low == doctest::Approx(0.82));
  CHECK(axis.high == doctest::Approx(0.94));
  CHECK(ticksOf({730.0, 910.0}, {.fromZero = true, .rounded = true}) == "0 200 400 600 800 1000");
}

TEST_CASE("axisOver: makes an axis for one value, equal values, no values and nan") {
  CHECK(ticksOf({0.5}) == "0.46 0.48 0.50 0.52 0.54");
  CHECK(ticksOf({3.0, 3.0}, {.whole = true}) == "2 3 4");
  CHECK(ticksOf({0.0, 0.0}, {.fromZero = true}) == "0.0 0.2 0.4 0.6 0.8 1.0");
  CHECK(ticksOf(nullptr) == "0.0 0.2 0.4 0.6 0.8 1.0");
  CHECK(ticksOf({std::nan(""), 1.0, HUGE_VAL, 2.0}) == "1.0 1.2 1.4 1.6 1.8 2.0");
}

TEST_CASE("axisOver: makes an axis for values as far apart as numbers can be") {
  auto axis = axisOver({-1.7e308, 1.7e308}, {.rounded = true});
  CHECK(std::isfinite(axis.high - axis.low));
  CHECK(axis.ticks.size() >= 2);
  CHECK(axisOver({1.0, 1.0 + 1e-16}, {}).ticks.size() < 10);
  CHECK(axisOver({1e-9, 2e-9}, {}).ticks.size() >= 4);
}

}  // namespace
}  // namespace runner

// runner/report/chart_axis.h: where an axis of a chart begins and ends, and where its ticks are.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

namespace runner {

// The distance of two such is still a number.
constexpr double CHART_VALUE_MAX = 1e300;

struct AxisOptions {
  bool fromZero = false;            // 0 is on it
  bool whole = false;               // of whole numbers: epochs, steps
  bool rounded = false;             // begins and ends at a tick
  double atMost = CHART_VALUE_MAX;  // what lies beyond is drawn at the edge
  kj::uint ticksMax = 5;
};

struct Axis {
  double low;
  double high;  // above `low`
  double step;  // between two ticks: 1, 2 or 5 times a power of ten
  kj::Array<double> ticks;

  // Share of the way from `low` to `high`.
  double at(double value) const { return (value - low) / (high - low); }
  // `value` in as many digits as the ticks need: "0.05", "12k".
  kj::String label(double value) const;
};

// An axis that shows all finite ones of `values`. Values that are all the same, or none, get some
// room around them.
Axis axisOver(kj::ArrayPtr<const double> values, const AxisOptions& options);

}  // namespace runner

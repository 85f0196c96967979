// runner/report/chart_axis.h: where an axis of a chart begins and ends, and where its ticks are.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

namespace runner {

// The distance of two values of this size is still a finite number.
constexpr double CHART_VALUE_MAX = 1e300;

// How axisOver() chooses an axis.
struct AxisOptions {
  bool fromZero = false;            // the axis includes 0
  bool whole = false;               // for whole numbers: epochs, steps
  bool rounded = false;             // the axis begins and ends at a tick
  double atMost = CHART_VALUE_MAX;  // larger values are drawn at the edge
  kj::uint ticksMax = 5;
};

// The range of an axis, with its ticks in ascending order.
struct Axis {
  double low;
  double high;  // above `low`
  double step;  // between two ticks: 1, 2 or 5 times a power of ten
  kj::Array<double> ticks;

  // Returns the position of `value` between `low` (0) and `high` (1).
  double at(double value) const { return (value - low) / (high - low); }
  // Returns `value` with as many digits as the ticks need: "0.05", "12k".
  kj::String label(double value) const;
};

// Returns an axis that shows all finite values of `values`. If all values are the same, or there
// are none, the axis gets some room around them.
Axis axisOver(kj::ArrayPtr<const double> values, const AxisOptions& options);

}  // namespace runner

#include "runner/report/chart_axis.h"

#include <cmath>

#include "runner/text/numbers.h"

namespace runner {

namespace {

// Values with a smaller relative distance are drawn as one.
constexpr double SAME = 1e-9;

double niceStep(double raw) {
  double power = std::pow(10, std::floor(std::log10(raw)));
  for (double digit: {1.0, 2.0, 5.0}) {
    if (digit * power >= raw * (1 - SAME)) return digit * power;
  }
  return 10 * power;
}

// Returns how many decimals distinguish multiples of `step`.
uint decimalsOf(double step) {
  double digits = -std::floor(std::log10(step) + SAME);
  return digits <= 0 ? 0 : uint(digits);
}

}  // namespace

kj::String Axis::label(double value) const {
  struct {
    double unit;
    kj::StringPtr letter;
  } units[] = {{1e9, "G"_kj}, {1e6, "M"_kj}, {1e3, "k"_kj}, {1, ""_kj}};
  if (value == 0 && step >= 1) return kj::str("0");
  if (std::fabs(step) >= 1e13 || step < 1e-6) {
    if (value == 0) return kj::str("0");
    // Uses as many digits as distinguish the value from the next tick.
    auto place = [](double x) { return std::floor(std::log10(x) + SAME); };
    double digits = place(std::fabs(value)) - place(step);
    return withExponent(value, uint(kj::max(0.0, kj::min(15.0, digits))));
  }
  double most = kj::max(std::fabs(low), std::fabs(high));
  for (auto& unit: units) {
    // `0.5M` and `1.0M`, not `500k` and `1000k`.
    bool isTenth = unit.unit > 1e3 && most >= unit.unit && step >= unit.unit / 10;
    if (step < unit.unit && unit.unit > 1 && !isTenth) continue;
    return kj::str(fixedPoint(value / unit.unit, decimalsOf(step / unit.unit)), unit.letter);
  }
  KJ_UNREACHABLE;
}

Axis axisOver(kj::ArrayPtr<const double> values, const AxisOptions& options) {
  double low = 0, high = 0;
  bool any = false;
  for (double value: values) {
    if (!std::isfinite(value)) continue;
    double v = kj::max(-CHART_VALUE_MAX, kj::min(options.atMost, value));
    low = any ? kj::min(low, v) : v;
    high = any ? kj::max(high, v) : v;
    any = true;
  }
  if (!any) high = 1;
  if (options.fromZero) {
    low = kj::min(low, 0.0);
    high = kj::max(high, 0.0);
  }
  double size = kj::max(std::fabs(low), std::fabs(high));
  if (high - low <= size * SAME) {
    double room = options.whole ? 1 : size == 0 ? 1 : size * 0.1;
    low -= options.fromZero ? 0 : room;
    high += room;
  }

  Axis axis;
  axis.step = niceStep((high - low) / options.ticksMax);
  if (options.whole) axis.step = kj::max(1.0, axis.step);
  // A rounding error must not remove a tick at the end.
  double first = std::ceil(low / axis.step - SAME), last = std::floor(high / axis.step + SAME);
  if (options.rounded) {
    first = std::floor(low / axis.step + SAME);
    last = std::ceil(high / axis.step - SAME);
    low = first * axis.step;
    high = last * axis.step;
  }
  axis.low = low;
  axis.high = high;
  auto ticks = kj::heapArrayBuilder<double>(last < first ? 0 : size_t(last - first) + 1);
  for (double i = first; i <= last; i++) ticks.add(i * axis.step + 0.0);  // adding 0 avoids -0
  axis.ticks = ticks.finish();
  return axis;
}

}  // namespace runner

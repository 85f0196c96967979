#include "configs/language/limits.h"

#include <cmath>

namespace configs {

kj::String typeOf(IntegerLimits limits) {
  bool low = limits.atLeast != int64_t(kj::minValue), high = limits.atMost != int64_t(kj::maxValue);
  if (low && high) return kj::str("integer ", limits.atLeast, " … ", limits.atMost);
  if (low) return kj::str("integer ≥ ", limits.atLeast);
  if (high) return kj::str("integer ≤ ", limits.atMost);
  return kj::str("integer");
}

kj::String typeOf(RealLimits limits) {
  bool above = limits.above > -kj::inf(), atLeast = limits.atLeast > limits.above;
  bool below = limits.below < kj::inf(), atMost = limits.atMost < limits.below;
  if (atLeast && atMost) return kj::str("number ", limits.atLeast, " … ", limits.atMost);
  auto low = atLeast ? kj::str(" ≥ ", limits.atLeast)
             : above ? kj::str(" > ", limits.above)
                     : kj::str();
  auto high = atMost  ? kj::str(" ≤ ", limits.atMost)
              : below ? kj::str(" < ", limits.below)
                      : kj::str();
  return kj::str("number", low, low.size() > 0 && high.size() > 0 ? " and" : "", high);
}

bool allows(IntegerLimits limits, int64_t value) {
  return value >= limits.atLeast && value <= limits.atMost;
}

bool allows(RealLimits limits, double value) {
  return value > limits.above && value >= limits.atLeast && value < limits.below &&
         value <= limits.atMost;
}

int64_t lowest(IntegerLimits limits) {
  if (limits.atLeast != int64_t(kj::minValue)) return limits.atLeast;
  return kj::min(int64_t(0), limits.atMost);
}

int64_t clamp(IntegerLimits limits, int64_t value) {
  return kj::max(limits.atLeast, kj::min(value, limits.atMost));
}

double clamp(RealLimits limits, double value) {
  if (allows(limits, value)) return value;
  double low = kj::max(limits.above, limits.atLeast), high = kj::min(limits.below, limits.atMost);
  double bound = value >= high ? high : low;
  if (!std::isfinite(bound)) bound = std::isfinite(low) ? low : std::isfinite(high) ? high : 0;
  if (allows(limits, bound)) return bound;
  if (std::isfinite(low) && std::isfinite(high)) return low + (high - low) / 2;
  return bound == low ? bound + 1 : bound - 1;
}

double lowest(RealLimits limits) {
  return clamp(limits, -kj::inf());
}

}  // namespace configs

// configs/language/limits.h: bounds of numbers, and what messages and manual call them.
#pragma once

#include <kj/common.h>
#include <kj/string.h>

#include <cstdint>

namespace configs {

// Bounds of a number, inclusive.
struct IntegerLimits {
  int64_t atLeast = kj::minValue;
  int64_t atMost = kj::maxValue;
};

// Bounds of a number. `above` and `below` are exclusive, `atLeast` and `atMost` inclusive. NaN is
// never allowed.
struct RealLimits {
  double above = -kj::inf();
  double atLeast = -kj::inf();
  double below = kj::inf();
  double atMost = kj::inf();
};

// "integer ≥ 1", "number ≥ 0 and < 1": a type with its limits.
kj::String typeOf(IntegerLimits limits);
kj::String typeOf(RealLimits limits);

bool allows(IntegerLimits limits, int64_t value);
bool allows(RealLimits limits, double value);

// The lowest allowed number; what is closest to 0 if there is no lowest.
int64_t lowest(IntegerLimits limits);
double lowest(RealLimits limits);

// The allowed number nearest to `value`. An exclusive bound has no nearest neighbour that is of
// use: 1 beyond it, or the middle between the bounds, stands for it.
int64_t clamp(IntegerLimits limits, int64_t value);
double clamp(RealLimits limits, double value);

}  // namespace configs

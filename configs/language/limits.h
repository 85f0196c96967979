// configs/language/limits.h: the bounds of numbers, and their names in messages and in the
// reference.
#pragma once

#include <kj/common.h>
#include <kj/string.h>

#include <cstdint>

namespace configs {

// Bounds of an integer, inclusive.
struct IntegerLimits {
  int64_t atLeast = kj::minValue;
  int64_t atMost = kj::maxValue;
};

// Bounds of a real number. `above` and `below` are exclusive, `atLeast` and `atMost` inclusive. NaN
// is never allowed.
struct RealLimits {
  double above = -kj::inf();
  double atLeast = -kj::inf();
  double below = kj::inf();
  double atMost = kj::inf();
};

// Returns a type with its limits: "integer ≥ 1", "number ≥ 0 and < 1".
kj::String typeOf(IntegerLimits limits);
kj::String typeOf(RealLimits limits);

bool allows(IntegerLimits limits, int64_t value);
bool allows(RealLimits limits, double value);

// Returns the lowest allowed number, or the allowed number closest to 0 if there is no lower bound.
int64_t lowest(IntegerLimits limits);
double lowest(RealLimits limits);

// Returns the allowed number nearest to `value`. An exclusive bound has no nearest allowed number.
// Instead, the result is 1 away from that bound, or the middle between the two bounds.
int64_t clamp(IntegerLimits limits, int64_t value);
double clamp(RealLimits limits, double value);

}  // namespace configs

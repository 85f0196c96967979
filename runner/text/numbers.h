// runner/text/numbers.h: numbers as text, the same in every locale.
#pragma once

#include <kj/common.h>
#include <kj/string.h>

#include <cstdint>

namespace runner {

using kj::uint;

// `value` as C's `%.<decimals>f` in every locale; a NaN is `nan`, whatever its sign. `decimals` is
// at most 17.
kj::String fixedPoint(double value, uint decimals);

// `value` for people: as fixedPoint(), but from ten million on in three digits and with an
// exponent, such as `1.76e32`.
kj::String figureText(double value, uint decimals);

// `value` with an exponent and at most `decimals` digits behind the point, without zeros at their
// end: `1.76e32`, `2e-7`. A NaN is `nan`.
kj::String withExponent(double value, uint decimals);

// `value` as C's `%g`: six digits at most, in every locale. A NaN is `nan`.
kj::String sixDigits(double value);

// `text` at the right of `width` columns (of a byte each); as it is if it is wider.
kj::String alignedRight(kj::StringPtr text, size_t width);

// A number of images per second: `812`, with more decimals where it is small, so that a slow run
// does not seem to stand still.
kj::String rateText(double images_per_s);

// `1:23`, from an hour on `2:05:00`.
kj::String durationText(double seconds);

// 1652826 as `1,652,826`.
kj::String grouped(uint64_t n);

}  // namespace runner

// runner/text/numbers.h: writes and reads numbers as text, the same in every locale.
#pragma once

#include <kj/common.h>
#include <kj/string.h>

#include <cstdint>

namespace runner {

using kj::uint;

// Returns `value` as C's `%.<decimals>f`. A NaN is `nan`, whatever its sign. `decimals` is at most
// 17.
kj::String fixedPoint(double value, uint decimals);

// Returns "1 worker", "2 workers".
kj::String counted(uint64_t n, kj::StringPtr noun);

// Returns `value` without its fraction, for numbers that another program wrote. NaN and numbers
// below 0 become 0, and numbers above 2^53 become 2^53.
uint64_t wholeNumber(double value);

// Returns the value that fixedPoint(value, decimals) shows.
double roundedTo(double value, uint decimals);

// Returns `value` for people: as fixedPoint(), but from ten million on with three digits and an
// exponent, such as `1.76e32`.
kj::String figureText(double value, uint decimals);

// Returns `value` with an exponent and at most `decimals` digits after the point, without trailing
// zeros: `1.76e32`, `2e-7`. A NaN is `nan`.
kj::String withExponent(double value, uint decimals);

// Returns `value` as C's `%g`, with at most six digits. A NaN is `nan`.
kj::String sixDigits(double value);

// Returns the shortest text from which a program reads this float again: `0.1`, `1e-05`.
kj::String shortest(float value);

// Returns `text` at the right of `width` columns, where each byte counts as a column. A wider text
// is returned unchanged.
kj::String alignedRight(kj::StringPtr text, size_t width);

// Returns a number of images per second: `812`. Small numbers have more decimals, so that a slow
// run does not seem to stand still.
kj::String rateText(double images_per_s);

// Returns a duration as `1:23`, and from one hour on as `2:05:00`.
kj::String durationText(double seconds);

// Returns 1652826 as `1,652,826`.
kj::String grouped(uint64_t n);

// Returns the number that `text` consists of: digits only, so that `+7`, `-7` and ` 7` are not
// numbers. `007` is 7. Null if the text is something else, or the number is above `most`.
kj::Maybe<uint64_t> parseWhole(kj::ArrayPtr<const char> text, uint64_t most = kj::maxValue);

}  // namespace runner

#include "runner/text/numbers.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace runner {
namespace {

TEST_CASE("fixedPoint: writes numbers like printf, but nan without a sign") {
  CHECK(fixedPoint(0.25, 1) == "0.2");
  CHECK(fixedPoint(-1.5, 2) == "-1.50");
  CHECK(fixedPoint(std::nan(""), 6) == "nan");
  CHECK(fixedPoint(-std::nan(""), 6) == "nan");
  CHECK(fixedPoint(-std::numeric_limits<double>::infinity(), 6) == "-inf");
  CHECK(fixedPoint(std::numeric_limits<double>::max(), 17).size() == 309 + 18);
}

TEST_CASE("figureText: writes a huge number with three digits and an exponent") {
  CHECK(figureText(175827461273158795294793340059648.0, 6) == "1.76e32");
  CHECK(figureText(-2e7, 6) == "-2e7");
  CHECK(figureText(9999999.25, 2) == "9999999.25");
  CHECK(figureText(0.5, 3) == "0.500");
  CHECK(figureText(std::nan(""), 3) == "nan");
  CHECK(figureText(std::numeric_limits<double>::infinity(), 3) == "inf");
}

TEST_CASE("withExponent: leaves out trailing zeros") {
  CHECK(withExponent(1.5e-7, 3) == "1.5e-7");
  CHECK(withExponent(1e100, 2) == "1e100");
  CHECK(withExponent(0, 2) == "0e0");
  CHECK(withExponent(20, 0) == "2e1");
  CHECK(withExponent(std::nan(""), 0) == "nan");
}

}  // namespace
}  // namespace runner

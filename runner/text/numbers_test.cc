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

TEST_CASE("rateText: writes a slow rate with more decimals") {
  CHECK(rateText(812.4) == "812");
  CHECK(rateText(9.96) == "10.0");
  CHECK(rateText(0.25) == "0.2");
  CHECK(rateText(0.0421) == "0.0421");
  CHECK(rateText(0) == "0");
  CHECK(rateText(kj::nan()) == "nan");
}

TEST_CASE("wholeNumber: accepts any number") {
  CHECK(wholeNumber(2.9) == 2);
  CHECK(wholeNumber(-1) == 0);
  CHECK(wholeNumber(kj::nan()) == 0);
  CHECK(wholeNumber(1e30) == 1ull << 53);
  CHECK(wholeNumber(kj::inf()) == 1ull << 53);
}

TEST_CASE("shortest: writes no digit that a float does not need, and each that it needs") {
  CHECK(shortest(0.1f) == "0.1");
  CHECK(shortest(-3) == "-3");
  CHECK(shortest(1e-5f) == "1e-05");
  CHECK(shortest(1 / 58.0f) == "0.01724138");
  CHECK(shortest(std::nextafter(0.1f, 1.0f)) == "0.10000001");
  CHECK(shortest(16777215.0f / 16777216) == "0.99999994");
  CHECK(shortest(8589973504.0f) == "8589973504");
}

TEST_CASE("parseWhole: accepts digits only, and no number above the limit") {
  CHECK(parseWhole("0"_kj) == 0u);
  CHECK(parseWhole("007"_kj) == 7u);
  CHECK(parseWhole("18446744073709551615"_kj) == uint64_t(kj::maxValue));
  CHECK(parseWhole("9999"_kj, 9999) == 9999u);
  CHECK(parseWhole("10000"_kj, 9999) == nullptr);
  for (auto text: {"", "+7", "-7", " 7", "7 ", "7\n", "0x7", "7.0", "18446744073709551616"}) {
    CAPTURE(text);
    CHECK(parseWhole(kj::StringPtr(text)) == nullptr);
  }
}

TEST_CASE("roundedTo: gives the value that fixedPoint() shows") {
  CHECK(roundedTo(0.1234567, 6) == 0.123457);
  CHECK(roundedTo(-2.5004, 3) == -2.5);
  CHECK(fixedPoint(roundedTo(1502345678.2345678, 6), 6) == "1502345678.234568");
  CHECK(roundedTo(kj::nan(), 2) != roundedTo(kj::nan(), 2));
  CHECK(roundedTo(kj::inf(), 2) == kj::inf());
}

}  // namespace
}  // namespace runner

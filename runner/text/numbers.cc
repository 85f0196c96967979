#include "runner/text/numbers.h"

#include <kj/debug.h>
#include <kj/vector.h>
#include <string.h>

#include <charconv>
#include <cmath>

namespace runner {

kj::String counted(uint64_t n, kj::StringPtr noun) {
  return kj::str(n, " ", noun, n == 1 ? "" : "s");
}

uint64_t wholeNumber(double value) {
  constexpr double MOST = 1ull << 53;
  return value > 0 ? uint64_t(kj::min(value, MOST)) : 0;
}

kj::String fixedPoint(double value, uint decimals) {
  KJ_REQUIRE(decimals <= 17, "a double has no more than 17 meaningful digits", decimals);
  if (std::isnan(value)) return kj::str("nan");
  // The largest double has 309 digits before the point.
  char buffer[384];
  auto [end, error] = std::to_chars(
      buffer, buffer + sizeof(buffer), value, std::chars_format::fixed, static_cast<int>(decimals));
  KJ_ASSERT(error == std::errc());
  return kj::heapString(buffer, end - buffer);
}

double roundedTo(double value, uint decimals) {
  auto text = fixedPoint(value, decimals);
  double rounded = 0;
  auto [end, error] = std::from_chars(text.begin(), text.end(), rounded);
  KJ_ASSERT(error == std::errc() && end == text.end(), text);
  return rounded;
}

kj::String figureText(double value, uint decimals) {
  constexpr double LARGE = 1e7;
  bool large = std::isfinite(value) && std::fabs(value) >= LARGE;
  return large ? withExponent(value, 2) : fixedPoint(value, decimals);
}

kj::String rateText(double images_per_s) {
  if (images_per_s == 0 || images_per_s >= 10) return figureText(images_per_s, 0);
  return figureText(images_per_s, images_per_s >= 0.1 ? 1 : 4);
}

kj::String withExponent(double value, uint decimals) {
  KJ_REQUIRE(decimals <= 17, "a double has no more than 17 meaningful digits", decimals);
  if (!std::isfinite(value)) return fixedPoint(value, 0);
  char buffer[32];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value,
      std::chars_format::scientific, static_cast<int>(decimals));
  KJ_ASSERT(error == std::errc());
  // `1.760e+32` consists of the digits, and of the exponent with its sign.
  auto digitsEnd = static_cast<char*>(memchr(buffer, 'e', end - buffer));
  auto exponent = digitsEnd + 1;
  bool negative = *exponent == '-';
  exponent++;
  while (end - exponent > 1 && *exponent == '0') exponent++;
  if (decimals > 0) {
    while (digitsEnd[-1] == '0') digitsEnd--;
    if (digitsEnd[-1] == '.') digitsEnd--;
  }
  return kj::str(
      kj::arrayPtr(buffer, digitsEnd), negative ? "e-" : "e", kj::arrayPtr(exponent, end));
}

kj::String sixDigits(double value) {
  if (std::isnan(value)) return kj::str("nan");
  char buffer[32];
  auto [end, error] =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::general, 6);
  KJ_ASSERT(error == std::errc());
  return kj::heapString(buffer, end - buffer);
}

kj::String alignedRight(kj::StringPtr text, size_t width) {
  return kj::str(kj::repeat(' ', width - kj::min(width, text.size())), text);
}

kj::String durationText(double seconds) {
  auto total = static_cast<uint64_t>(std::round(seconds));
  auto twoDigits = [](uint64_t n) { return kj::str(n < 10 ? "0" : "", n); };
  uint64_t hours = total / 3600;
  uint64_t minutes = total / 60 % 60;
  auto rest = twoDigits(total % 60);
  if (hours == 0) return kj::str(minutes, ':', rest);
  return kj::str(hours, ':', twoDigits(minutes), ':', rest);
}

kj::String shortest(float value) {
  char buffer[64];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  KJ_ASSERT(error == std::errc());
  return kj::heapString(buffer, end - buffer);
}

kj::String grouped(uint64_t n) {
  auto digits = kj::str(n);
  kj::Vector<char> out;
  for (size_t i = 0; i < digits.size(); i++) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out.add(',');
    out.add(digits[i]);
  }
  out.add('\0');
  return kj::String(out.releaseAsArray());
}

kj::Maybe<uint64_t> parseWhole(kj::ArrayPtr<const char> text, uint64_t most) {
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text.begin(), text.end(), number);
  bool isWhole = error == std::errc() && end == text.end();
  if (!isWhole || number > most) return nullptr;
  return number;
}

}  // namespace runner

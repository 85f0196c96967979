#include "tools/logs/line_text.h"

#include <stdlib.h>
#include <string.h>

#include <charconv>

namespace tools {
namespace {

constexpr size_t DIGITS_MAX = 9;

constexpr kj::StringPtr QUOTED_NEWLINE = "\\n"_kj, QUOTED_TAB = "\\t"_kj;

bool isDigit(char c) {
  return c >= '0' && c <= '9';
}

// `digits` are at most DIGITS_MAX.
kj::Maybe<uint> countOf(LineText digits) {
  if (digits.size() == 0 || digits.size() > DIGITS_MAX) return nullptr;
  uint value = 0;
  for (char c: digits) value = value * 10 + (c - '0');
  return value;
}

}  // namespace

void eachLine(LineText log, kj::FunctionParam<void(LineText line, uint64_t number)> use) {
  uint64_t number = 0;
  for (const char* position = log.begin(); position != log.end();) {
    auto newline = static_cast<const char*>(memchr(position, '\n', log.end() - position));
    auto end = newline == nullptr ? log.end() : newline;
    auto line = kj::arrayPtr(position, end);
    ++number;
    while (true) {
      KJ_IF_MAYBE(place, find(line, QUOTED_NEWLINE)) {
        use(line.slice(0, *place), number);
        line = line.slice(*place + QUOTED_NEWLINE.size(), line.size());
      } else {
        break;
      }
    }
    use(line, number);
    position = newline == nullptr ? end : newline + 1;
  }
}

bool startsWith(LineText text, kj::StringPtr word) {
  return text.size() >= word.size() && memcmp(text.begin(), word.begin(), word.size()) == 0;
}

bool endsWith(LineText text, kj::StringPtr word) {
  return text.size() >= word.size() &&
         memcmp(text.end() - word.size(), word.begin(), word.size()) == 0;
}

kj::Maybe<size_t> find(LineText text, kj::StringPtr word) {
  auto place =
      static_cast<const char*>(memmem(text.begin(), text.size(), word.begin(), word.size()));
  if (place == nullptr) return nullptr;
  return size_t(place - text.begin());
}

bool take(LineText& rest, kj::StringPtr word) {
  if (!startsWith(rest, word)) return false;
  rest = rest.slice(word.size(), rest.size());
  return true;
}

void takeSpaces(LineText& rest) {
  while (take(rest, " ")) {
  }
}

kj::Maybe<uint> takeCount(LineText& rest) {
  size_t digits = 0;
  while (digits < rest.size() && digits <= DIGITS_MAX && isDigit(rest[digits])) digits++;
  KJ_IF_MAYBE(value, countOf(rest.slice(0, digits))) {
    rest = rest.slice(digits, rest.size());
    return *value;
  }
  return nullptr;
}

kj::Maybe<uint> takeCountFromEnd(LineText& rest) {
  size_t begin = rest.size();
  while (begin > 0 && rest.size() - begin <= DIGITS_MAX && isDigit(rest[begin - 1])) begin--;
  KJ_IF_MAYBE(value, countOf(rest.slice(begin, rest.size()))) {
    rest = rest.slice(0, begin);
    return *value;
  }
  return nullptr;
}

kj::Maybe<double> takeValue(LineText& rest) {
  double value;
  auto [end, error] = std::from_chars(rest.begin(), rest.end(), value);
  // A figure beyond the range of a double, such as the loss of a run that diverges, is infinite, or
  // 0 if it is too small.
  if (error == std::errc::result_out_of_range) {
    value = ::strtod(kj::heapString(kj::arrayPtr(rest.begin(), end)).cStr(), nullptr);
  } else if (error != std::errc()) {
    return nullptr;
  }
  rest = kj::arrayPtr(end, rest.end());
  return value;
}

bool takeGap(LineText& rest) {
  size_t before = rest.size();
  while (take(rest, " ") || take(rest, "\t") || take(rest, QUOTED_TAB)) {
  }
  return rest.size() < before;
}

bool endsHere(LineText rest) {
  if (rest.size() == 0) return true;
  char c = rest[0];
  return static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '\'' || c == '`' ||
         startsWith(rest, QUOTED_TAB);
}

}  // namespace tools

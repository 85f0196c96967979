#include "configs/language/syntax_error.h"

#include <string_view>

namespace configs {

namespace {

bool isKeyCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

// The word that toml++ complains of: it names a place in or just behind it.
Span wordAt(const Source& source, const Line& line, size_t at) {
  auto& text = source.text;
  auto isWord = [&](size_t i) {
    char c = text[i];
    return isKeyCharacter(c) || c == '.' || c == '+' || (c & 0x80) != 0;
  };
  size_t from = at, to = at;
  while (from > line.begin() && isWord(from - 1)) --from;
  while (to < line.end() && isWord(to)) ++to;
  return line.span(from, to);
}

// The key or header that is given a second time: toml++ names its value, or the header's bracket.
Span keyBefore(const Source& source, const Line& line, size_t at) {
  auto& text = source.text;
  if (at < line.end() && text[at] == '[') {
    size_t to = line.end();
    while (to > at + 1 && text[to - 1] != ']') --to;
    return line.span(at, to);
  }
  size_t to = at;
  auto isGap = [](char c) { return c == ' ' || c == '\t' || c == '='; };
  while (to > line.begin() && isGap(text[to - 1])) --to;
  size_t from = to;
  auto endsKey = [](char c) { return c == ' ' || c == '\t' || c == '{' || c == ','; };
  while (from > line.begin() && !endsKey(text[from - 1])) --from;
  return from < to ? line.span(from, to) : wordAt(source, line, at);
}

kj::String textOf(const Span& span) {
  Line line(*span.source, span.line);
  return kj::heapString(
      span.source->text.slice(line.byteAt(span.column), line.byteAt(span.endColumn)));
}

bool contains(kj::StringPtr text, const char* part) {
  return std::string_view(text.cStr(), text.size()).find(part) != std::string_view::npos;
}

// What toml++ says of a real number and of an integer that is too large.
constexpr const char* REAL_OUT_OF_RANGE = "could not be interpreted as a value";
constexpr const char* INTEGER_OUT_OF_RANGE = "not representable in 64 bits";

}  // namespace

bool isOutOfRange(kj::StringPtr description) {
  return contains(description, REAL_OUT_OF_RANGE) || contains(description, INTEGER_OUT_OF_RANGE);
}

void reportSyntax(const Source& source, uint lineNumber, uint column, kj::StringPtr description,
    Diagnostics& diagnostics) {
  auto what = kj::str(description);
  auto thing = kj::str("file");
  constexpr kj::StringPtr PREFIX = "Error while parsing "_kj;
  if (what.startsWith(PREFIX)) {
    KJ_IF_MAYBE(colon, what.findFirst(':')) {
      thing = kj::heapString(what.slice(PREFIX.size(), *colon));
      what = kj::str(what.slice(kj::min(*colon + 2, what.size())));
    }
  }
  Line line(source, lineNumber);
  auto at = line.byteAt(column);
  auto span = wordAt(source, line, at);

  if (contains(what, "cannot redefine")) {
    auto key = keyBefore(source, line, at);
    diagnostics.error(key, kj::str("`", textOf(key), "` is given twice"),
        "one of the two has to go: which one was meant cannot be told");
  } else if (contains(what, "could not determine value type") || thing == "boolean") {
    auto word = textOf(span);
    diagnostics.error(span, kj::str("`", word, "` is not a value"),
        kj::str("a string stands in quotes: \"", word, "\"; truth is `true` or `false`"));
  } else if (contains(what, REAL_OUT_OF_RANGE)) {
    diagnostics.error(span, kj::str("`", textOf(span), "` is outside the range of numbers"),
        "write a number between -1.79e308 and 1.79e308");
  } else if (contains(what, INTEGER_OUT_OF_RANGE)) {
    diagnostics.error(span, kj::str("`", textOf(span), "` is outside the range of integers"),
        "write an integer from -9223372036854775808 to 9223372036854775807");
  } else if (contains(what, "expected value, saw")) {
    diagnostics.error(span, "a value is missing here");
  } else if (contains(what, "end-of-file")) {
    bool vowel = thing.startsWith("a") || thing.startsWith("i");
    diagnostics.error(
        span, kj::str("the text ends in the middle of ", vowel ? "an " : "a ", thing));
  } else if (contains(what, "unescaped control characters")) {
    diagnostics.error(span,
        "the string is not closed on this line (or contains a control character)",
        "close it with the quote that it began with");
  } else if (contains(what, "utf-8")) {
    diagnostics.error(span, "this is not UTF-8 text");
  } else {
    diagnostics.error(span, kj::str("this is not TOML: ", what));
  }
}

}  // namespace configs

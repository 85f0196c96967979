#include "configs/language/syntax_error.h"

#include <kj/vector.h>

#include <string_view>

namespace configs {

namespace {

bool isKeyCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

bool isSpace(char c) {
  return c == ' ' || c == '\t';
}

// Returns the word that toml++ complains about. The place that toml++ names is in the word or just
// after it.
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

// Returns the text of a value without quotes around the place `at`, such as `/data/x` or `my
// words`. It begins after the `=`, comma or bracket before `at`. It ends at the next comma,
// bracket, comment or line end.
Span bareValueAt(const Source& source, const Line& line, size_t at) {
  auto& text = source.text;
  auto isOneOf = [&](size_t i, kj::StringPtr characters) {
    for (char c: characters) {
      if (text[i] == c) return true;
    }
    return false;
  };
  size_t from = at, to = at;
  while (from > line.begin() && !isOneOf(from - 1, " \t=,[{")) --from;
  while (to < line.end() && !isOneOf(to, ",]}#\"'\r")) ++to;
  while (to > from && isOneOf(to - 1, " \t")) --to;
  return line.span(from, to);
}

// Calls `visit(i)` for each of the first `end` bytes that is outside strings and comments, until it
// returns false. Line ends are visited unless they are part of a string of several lines. A string
// of one line that is not closed ends with its line.
template <typename Visit>
void eachBareByte(kj::StringPtr text, size_t end, Visit&& visit) {
  auto isTriple = [&](size_t i) { return text[i] == text[i + 1] && text[i] == text[i + 2]; };
  char quote = 0;         // that ends the present string. In a comment: the end of the line
  bool hasLines = false;  // whether that string may have several lines
  for (size_t i = 0; i < end; ++i) {
    char c = text[i];
    if (quote != 0 && (c != '\n' || hasLines)) {
      if (c == '\\' && quote == '"') {
        ++i;
      } else if (c == quote && (!hasLines || isTriple(i))) {
        if (hasLines) {
          i += 2;
          // The string itself may end in one or two quotes.
          for (uint more = 0; more < 2 && text[i + 1] == quote; ++more) ++i;
        }
        quote = 0;
        hasLines = false;
      }
    } else if (c == '#') {
      quote = '\n';
    } else if (c == '"' || c == '\'') {
      quote = c;
      hasLines = isTriple(i);
      if (hasLines) i += 2;
    } else {
      quote = 0;
      if (!visit(i)) return;
    }
  }
}

// Returns the bracket of a list that is still open where the line at `end` begins, or null. The
// text before `end` has no error of its own.
kj::Maybe<size_t> openBracketBefore(kj::StringPtr text, size_t end) {
  kj::Vector<size_t> open;
  eachBareByte(text, end, [&](size_t i) {
    if (text[i] == '[') {
      open.add(i);
    } else if (text[i] == ']' && !open.empty()) {
      open.removeLast();
    }
    return true;
  });
  if (open.empty()) return nullptr;
  return open.back();
}

// Whether the line begins like `key =` or `[header]`, and therefore not like a value, or is the end
// of the text.
bool beginsAnew(const Source& source, const Line& line) {
  auto& text = source.text;
  size_t i = line.begin();
  auto skip = [&](auto&& belongs) {
    while (i < line.end() && belongs(text[i])) ++i;
  };
  skip(isSpace);
  if (i == text.size()) return true;
  bool isHeader = i < line.end() && text[i] == '[';
  skip([](char c) { return c == '['; });
  size_t begin = i;
  skip([](char c) { return isKeyCharacter(c) || c == '.' || c == '"'; });
  if (i == begin) return false;
  skip(isSpace);
  if (i == line.end()) return false;
  return isHeader ? text[i] == ']' : text[i] == '=';
}

// Returns the place of byte `at` of `source`.
Span spanAt(const Source& source, size_t at) {
  uint number = 1;
  for (char c: source.text.slice(0, at)) number += c == '\n';
  return Line(source, number).span(at, at + 1);
}

// Returns the key that is repeated. toml++ names the place of its value.
Span keyBefore(const Source& source, const Line& line, size_t at) {
  auto& text = source.text;
  size_t to = at;
  auto isGap = [](char c) { return isSpace(c) || c == '='; };
  while (to > line.begin() && isGap(text[to - 1])) --to;
  size_t from = to;
  auto endsKey = [](char c) { return isSpace(c) || c == '{' || c == ','; };
  while (from > line.begin() && !endsKey(text[from - 1])) --from;
  return from < to ? line.span(from, to) : wordAt(source, line, at);
}

// Returns the place of the header if the line is `[name]` or `[[name]]`, with or without spaces.
// Null for another line.
kj::Maybe<Span> headerIn(const Source& source, const Line& line, kj::StringPtr name) {
  size_t end = line.begin();
  kj::Vector<char> letters;
  for (size_t i: kj::range(line.begin(), line.end())) {
    char c = source.text[i];
    if (c == '#') break;
    if (isSpace(c)) continue;
    letters.add(c);
    end = i + 1;
  }
  letters.add('\0');
  kj::StringPtr text(letters.begin(), letters.size() - 1);
  if (text != kj::str('[', name, ']') && text != kj::str("[[", name, "]]")) return nullptr;
  size_t begin = line.begin();
  while (isSpace(source.text[begin])) ++begin;
  return line.span(begin, end);
}

kj::String textOf(const Span& span) {
  Line line(*span.source, span.line);
  return kj::heapString(
      span.source->text.slice(line.byteAt(span.column), line.byteAt(span.endColumn)));
}

bool contains(kj::StringPtr text, const char* part) {
  return std::string_view(text.cStr(), text.size()).find(part) != std::string_view::npos;
}

bool isLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Reports text in the place of a value.
void reportBareValue(const Span& span, Diagnostics& diagnostics) {
  auto word = textOf(span);
  if (word.startsWith("=")) {
    diagnostics.error(span, "this is one `=` too many", "write key = value");
    return;
  }
  for (auto curly: {"“", "”", "„", "‘", "’"}) {
    if (!word.startsWith(curly)) continue;
    diagnostics.error(
        span, kj::str("`", curly, "` is not a quote"), "write the straight quote \" on both sides");
    return;
  }
  diagnostics.error(span, kj::str("`", word, "` is not a value"),
      kj::str("write a string in quotes: \"", word, "\". The booleans are `true` and `false`"));
}

constexpr kj::StringPtr WHICH_WAS_MEANT = "remove one of the two"_kj;

void reportTwice(const Span& span, Diagnostics& diagnostics) {
  diagnostics.error(span, kj::str("`", textOf(span), "` is given twice"), WHICH_WAS_MEANT);
}

// Reports at `span` a key or header, such as `a.b`, whose `a` is already complete.
void reportAddition(
    const Span& span, kj::StringPtr name, kj::StringPtr what, Diagnostics& diagnostics) {
  size_t dot = name.findLast('.').orDefault(0);
  auto whole = kj::heapString(name.slice(0, dot));
  auto part = name.slice(kj::min(dot + 1, name.size()));
  kj::String help;
  if (contains(what, "inline table")) {
    help = kj::str("write `[", whole, "]` as a section, or put `", part, "` into the braces");
  } else if (contains(what, "existing table")) {
    help = kj::str("put `", part, "` where `", whole, "` is given");
  } else {
    help = kj::str(WHICH_WAS_MEANT);
  }
  diagnostics.error(
      span, kj::str("`", textOf(span), "` adds to `", whole, "`, which is given further up"), help);
}

// Reports a header that clashes with something before it. If all of it is repeated, toml++ names
// its bracket. If it adds to something, toml++ names the end of its line, or the beginning of the
// next one.
void reportHeader(const Source& source, uint lineNumber, uint column, kj::StringPtr what,
    Diagnostics& diagnostics) {
  Line line(source, lineNumber), above(source, kj::max(1u, lineNumber - 1));
  auto begin = what.findFirst('\'').orDefault(0) + 1;
  auto name = kj::heapString(what.slice(begin, what.findLast('\'').orDefault(begin)));
  KJ_IF_MAYBE(own, headerIn(source, line, name)) {
    if (own->column == column) return reportTwice(*own, diagnostics);
    reportAddition(*own, name, what, diagnostics);
  } else KJ_IF_MAYBE(before, headerIn(source, above, name)) {
    reportAddition(*before, name, what, diagnostics);
  } else {
    // toml++ does not repeat a quoted name as it is written.
    auto place = line.byteAt(column);
    diagnostics.error(line.span(place, place + 1),
        "the header that ends here adds to a table that is given further up");
  }
}

// The words of toml++ for a real number and for an integer that are too large.
constexpr const char* REAL_OUT_OF_RANGE = "could not be interpreted as a value";
constexpr const char* INTEGER_OUT_OF_RANGE = "not representable in 64 bits";

}  // namespace

bool reportLongKey(const Source& source, Diagnostics& diagnostics) {
  auto& text = source.text;
  uint parts = 1;
  bool isLong = false;
  eachBareByte(text, text.size(), [&](size_t i) {
    if (text[i] == '.') {
      isLong = ++parts > KEY_PARTS_MAX;
      if (!isLong) return true;
      diagnostics.error(spanAt(source, i),
          kj::str("this key has more than ", KEY_PARTS_MAX, " parts"),
          "configs/REFERENCE.md lists all keys");
    } else if (!isKeyCharacter(text[i]) && !isSpace(text[i])) {
      parts = 1;
    }
    return !isLong;
  });
  return isLong;
}

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

  bool isOfString = thing == "literal string" && contains(what, "control characters");

  if (beginsAnew(source, line)) {
    KJ_IF_MAYBE(bracket, openBracketBefore(source.text, line.begin())) {
      diagnostics.error(
          spanAt(source, *bracket), "the list that begins here is not closed", "close it with `]`");
      return;
    }
  }
  bool isClash = contains(what, "cannot redefine") || contains(what, "cannot insert");
  if (isClash && thing == "table header") {
    reportHeader(source, lineNumber, column, what, diagnostics);
  } else if (isClash && contains(what, "as dotted key-value pair")) {
    reportAddition(span, textOf(span), what, diagnostics);
  } else if (isClash) {
    reportTwice(keyBefore(source, line, at), diagnostics);
  } else if (contains(what, "expected key or closing '}', saw '\\n'")) {
    diagnostics.error(span, "a table in braces ends on the line that it begins on",
        "write all of it on one line, or write it as a section");
  } else if (contains(what, "could not determine value type") || thing == "boolean" ||
             (thing == "floating-point" && isLetter(textOf(span)[0]))) {
    reportBareValue(bareValueAt(source, line, at), diagnostics);
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
  } else if (contains(what, "unescaped control characters") || isOfString) {
    diagnostics.error(span,
        "the string is not closed on this line (or contains a control character)",
        "close it with the quote that it began with");
  } else if (contains(what, "utf-8")) {
    diagnostics.error(span, "this is not UTF-8 text");
  } else if (contains(what, "TOML_MAX_NESTED_VALUES")) {
    diagnostics.error(span, "lists and tables are nested too deeply here: at most 256 levels");
  } else {
    diagnostics.error(span, kj::str("this is not TOML: ", what));
  }
}

}  // namespace configs

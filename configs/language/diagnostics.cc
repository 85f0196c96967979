#include "configs/language/diagnostics.h"

#include <algorithm>

#include "configs/language/display_width.h"
#include "configs/language/printable.h"

namespace configs {

namespace {

bool startsCharacter(char c) {
  return (c & 0xc0) != 0x80;
}

uint charactersOf(kj::ArrayPtr<const char> text) {
  uint result = 0;
  for (char c: text) result += startsCharacter(c);
  return result;
}

// A longer line is cut to this many columns. Half of them show the text before the place.
constexpr uint COLUMNS_MAX = 160;
constexpr uint COLUMNS_MIN = 8;

// Returns `text` as a terminal may show it after `before` on the same line. Tabs end at every
// eighth column.
kj::String shown(kj::ArrayPtr<const char> text, kj::StringPtr before) {
  constexpr uint TAB = 8;
  kj::Vector<char> result;
  uint column = columnsOf(before);
  for (auto& glyph: glyphsOf(text)) {
    char c = glyph.bytes[0];
    column += glyph.columns;
    if (c == '\t') {
      result.add(' ');
      while (column % TAB != 0) result.add(' '), column++;
    } else {
      result.addAll(glyph.bytes);
    }
  }
  // A terminal must not interpret the content of a file.
  return withoutControls(kj::heapString(result), '?');
}

// Returns the line with its number, and the carets under it, in at most `columnsMax` columns. Of a
// span over several lines, only the first is underlined.
kj::String excerpt(const Span& span, uint columnsMax) {
  Line line(*span.source, span.line);
  auto text = line.text();
  uint characters = charactersOf(text);
  size_t begin = line.byteAt(span.column) - line.begin();
  size_t end = span.endLine > span.line ? text.size() : line.byteAt(span.endColumn) - line.begin();
  auto before = shown(text.slice(0, begin), "");
  auto place = shown(text.slice(begin, end), before);
  auto both = kj::str(before, place);
  auto whole = kj::str(both, shown(text.slice(end, text.size()), both));

  // Counted from 0.
  uint caret = columnsOf(before);
  uint caretEnd = caret + columnsOf(place);
  // A place may lie after the end of its line.
  if (span.column > characters + 1) caret = caretEnd = caret + span.column - characters - 1;
  caretEnd = kj::max(caretEnd, caret + 1);

  auto number = kj::str(span.line);
  auto margin = kj::repeat(' ', number.size());
  uint room = kj::max(COLUMNS_MIN, columnsMax - kj::min(columnsMax, 5 + number.size()));
  auto cut = ellipsis();
  uint columns = columnsOf(whole);
  uint first = 0, last = columns;
  if (columns > kj::min(room, COLUMNS_MAX)) {
    uint kept = kj::min(room - 2 * columnsOf(cut), COLUMNS_MAX);
    if (caret > kept / 2) first = caret - kept / 2;
    last = kj::min(columns, first + kept);
  }
  kj::Vector<char> part;
  uint column = 0;
  for (auto& glyph: glyphsOf(whole)) {
    column += glyph.columns;
    // A wide character that is cut in half leaves a space.
    if (column > first && column - glyph.columns < first) part.add(' ');
    if (column - glyph.columns >= first && column <= last) part.addAll(glyph.bytes);
  }
  bool isCutBefore = first > 0, isCutBehind = last < columns;
  if (isCutBehind) caretEnd = kj::min(caretEnd, last + 1);
  auto padding = kj::repeat(' ', caret - first + (isCutBefore ? columnsOf(cut) : 0));
  auto carets = kj::repeat('^', caretEnd - caret);
  return kj::str("  ", number, columns == 0 ? " |" : " | ", isCutBefore ? cut : ""_kj, part,
      isCutBehind ? cut : ""_kj, "\n  ", margin, " | ", padding, carets, "\n");
}

}  // namespace

kj::String Span::toString() const {
  if (source == nullptr) return kj::str();
  return kj::str(source->name, ":", line, ":", column);
}

bool Span::beginsIn(const Span& outer) const {
  auto at = std::make_pair(line, column);
  return source == outer.source && at >= std::make_pair(outer.line, outer.column) &&
         at < std::make_pair(outer.endLine, outer.endColumn);
}

Line::Line(const Source& source, uint number): source(source), number(number) {
  kj::StringPtr text = source.text;
  auto next = [&]() { return text.slice(beginByte).findFirst('\n'); };
  for (uint line = 1; line < number; ++line) {
    KJ_IF_MAYBE(end, next()) {
      beginByte += *end + 1;
    } else {
      beginByte = text.size();
    }
  }
  endByte = beginByte + next().orDefault(text.size() - beginByte);
  if (endByte > beginByte && text[endByte - 1] == '\r') --endByte;
}

kj::ArrayPtr<const char> Line::text() const {
  return source.text.slice(beginByte, endByte);
}

size_t Line::byteAt(uint column) const {
  size_t at = beginByte;
  for (; column > 1 && at < endByte; --column) {
    do ++at;
    while (at < endByte && !startsCharacter(source.text[at]));
  }
  return at;
}

Span Line::span(size_t from, size_t to) const {
  auto columnOf = [&](size_t byte) { return charactersOf(source.text.slice(beginByte, byte)) + 1; };
  uint column = columnOf(from);
  return {&source, number, column, number, kj::max(columnOf(to), column + 1)};
}

void Diagnostics::error(Span span, kj::StringPtr message, kj::StringPtr help, Premise premise) {
  errors.add(Error{span, kj::str(message), kj::str(help), premise});
}

void Diagnostics::withdraw(Premise premise) {
  kj::Vector<Error> rest;
  for (auto& error: errors) {
    if (error.premise != premise) rest.add(kj::mv(error));
  }
  errors = kj::mv(rest);
}

void Diagnostics::addNew(const Diagnostics& others) {
  auto isKnown = [&](const Error& error) {
    for (auto& known: errors) {
      const Span &a = known.span, &b = error.span;
      if (a.source == b.source && a.line == b.line && a.column == b.column &&
          known.message == error.message) {
        return true;
      }
    }
    return false;
  };
  for (auto& error: others.errors) {
    if (!isKnown(error)) this->error(error.span, error.message, error.help);
  }
}

size_t Diagnostics::count() const {
  return errors.size();
}

bool Diagnostics::hasErrorIn(const Span& span) const {
  for (auto& error: errors) {
    if (error.span.beginsIn(span)) return true;
  }
  return false;
}

kj::String Diagnostics::format(
    kj::StringPtr file, kj::Maybe<uint> columns, kj::StringPtr end) const {
  if (errors.empty()) return kj::str();

  // Errors without a place come first, then those of `file`, then other sources in the order of
  // their first error.
  kj::Vector<const Source*> sources;
  sources.add(nullptr);
  for (auto& error: errors) {
    if (error.span.source != nullptr && error.span.source->name == file) {
      sources.add(error.span.source);
    }
  }
  for (auto& error: errors) sources.add(error.span.source);
  auto rank = [&](const Error* error) {
    return std::find(sources.begin(), sources.end(), error->span.source) - sources.begin();
  };
  kj::Vector<const Error*> sorted;
  for (auto& error: errors) sorted.add(&error);
  std::stable_sort(sorted.begin(), sorted.end(), [&](const Error* a, const Error* b) {
    auto rankA = rank(a), rankB = rank(b);
    if (rankA != rankB) return rankA < rankB;
    if (a->span.line != b->span.line) return a->span.line < b->span.line;
    return a->span.column < b->span.column;
  });

  kj::Vector<kj::String> blocks;
  for (auto error: sorted) {
    auto& span = error->span;
    bool placed = span.source != nullptr;
    bool wide = placed && (span.endLine != span.line || span.endColumn != span.column);
    auto help =
        error->help.size() > 0 ? kj::str("  help: ", printable(error->help), "\n") : nullptr;
    blocks.add(kj::str(printable(span.toString()), placed ? ": " : "",
        "error: ", printable(error->message), "\n",
        wide ? excerpt(span, columns.orDefault(uint(kj::maxValue))) : kj::str(), help));
  }
  // All may be in options of the command, or in a file that `file` extends.
  bool isElsewhere = true;
  for (auto& error: errors) {
    auto source = error.span.source;
    if (source == nullptr || source->name == file) isElsewhere = false;
  }
  auto in = isElsewhere ? nullptr : kj::str(" in ", printable(file));
  return kj::str(kj::strArray(blocks, ""), errors.size(), errors.size() == 1 ? " error" : " errors",
      in, "; ", end, ".\n");
}

namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

// Returns the edit distance in which no part is edited twice ("optimal string alignment"). Upper
// and lower case count as the same letter.
size_t distance(kj::StringPtr a, kj::StringPtr b) {
  size_t width = b.size() + 1;
  auto table = kj::heapArray<size_t>((a.size() + 1) * width);
  auto at = [&](size_t i, size_t j) -> size_t& { return table[i * width + j]; };
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        at(i, j) = i + j;
        continue;
      }
      bool same = lower(a[i - 1]) == lower(b[j - 1]);
      at(i, j) = kj::min(kj::min(at(i - 1, j), at(i, j - 1)) + 1, at(i - 1, j - 1) + !same);
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
          lower(a[i - 2]) == lower(b[j - 1])) {
        at(i, j) = kj::min(at(i, j), at(i - 2, j - 2) + 1);
      }
    }
  }
  return at(a.size(), b.size());
}

// Returns the words of `known` that begin with `word`, as "`a`, `b` or `c`". Empty if there are
// none, or if `word` is too short to mean any of them.
kj::String wordsThatBegin(kj::StringPtr word, kj::ArrayPtr<const kj::StringPtr> known) {
  constexpr size_t LETTERS_MIN = 3;
  kj::Vector<kj::String> found;
  for (auto candidate: known) {
    if (candidate.startsWith(word)) found.add(kj::str("`", candidate, "`"));
  }
  if (word.size() < LETTERS_MIN || found.empty()) return kj::str();
  auto last = kj::mv(found.back());
  found.removeLast();
  if (found.empty()) return last;
  return kj::str(kj::strArray(found, ", "), " or ", last);
}

}  // namespace

namespace {

// Whether `candidate` becomes `word` by leaving out letters, but not the first one.
bool isShortened(kj::StringPtr word, kj::StringPtr candidate) {
  size_t found = 0;
  for (char c: candidate) {
    if (found < word.size() && lower(c) == lower(word[found])) {
      ++found;
    } else if (found == 0) {
      return false;
    }
  }
  return found == word.size();
}

}  // namespace

kj::Maybe<kj::StringPtr> nearest(kj::StringPtr word, kj::ArrayPtr<const kj::StringPtr> known) {
  kj::Maybe<kj::StringPtr> result;
  size_t best = kj::maxValue;
  for (auto candidate: known) {
    size_t allowed = kj::max(word.size(), candidate.size()) / 3;
    // This check also keeps the table small when the word is as long as a page.
    if (word.size() > candidate.size() + allowed) continue;
    size_t edits = distance(word, candidate);
    // `valid_accuracy` means `validation_accuracy`, not `train_accuracy`.
    size_t weight = isShortened(word, candidate) ? edits : 2 * edits;
    if (edits <= allowed && weight < best) {
      best = weight;
      result = candidate;
    }
  }
  return result;
}

kj::String suggest(kj::StringPtr word, kj::ArrayPtr<const kj::StringPtr> known) {
  auto list = kj::strArray(known, ", ");
  auto longer = wordsThatBegin(word, known);
  if (longer.size() > 0) return kj::str("did you mean ", kj::mv(longer), "? (", list, ")");
  KJ_IF_MAYBE(meant, nearest(word, known)) {
    return kj::str("did you mean `", *meant, "`? (", list, ")");
  }
  return kj::str("known: ", list);
}

}  // namespace configs

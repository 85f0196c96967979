#include "runner/text/fitted_text.h"

#include <kj/debug.h>
#include <kj/map.h>
#include <kj/vector.h>
#include <string.h>

#include "configs/language/display_width.h"

namespace runner {

using configs::columnsOf;
using configs::glyphsOf;

namespace {

constexpr kj::StringPtr GAP = "  "_kj;

// Returns the parts of `line` that GAP separates.
kj::Vector<kj::String> partsOf(kj::StringPtr line) {
  kj::Vector<kj::String> parts;
  while (auto gap = strstr(line.cStr(), GAP.cStr())) {
    parts.add(kj::heapString(line.begin(), gap - line.begin()));
    line = line.slice(gap - line.begin() + GAP.size());
  }
  parts.add(kj::str(line));
  return parts;
}

// Returns as much of the ellipsis as fits.
kj::StringPtr ellipsisFor(uint columns) {
  auto mark = configs::ellipsis();
  uint width = columnsOf(mark);
  if (columns == 0) return "";
  return width <= columns ? mark : mark.slice(width - columns);
}

// Returns where the name at the beginning of `text` ends, or null if there is no name.
kj::Maybe<size_t> colonOf(kj::StringPtr text) {
  auto colon = strstr(text.cStr(), ": ");
  if (colon == nullptr) return nullptr;
  return size_t(colon - text.begin());
}

}  // namespace

kj::String shortened(kj::StringPtr text, uint columns) {
  if (columnsOf(text) <= columns) return kj::str(text);
  auto mark = ellipsisFor(columns);
  uint room = columns - columnsOf(mark);
  size_t end = 0, wordEnd = 0;
  uint used = 0, wordColumns = 0;
  for (auto& glyph: glyphsOf(text)) {
    bool space = glyph.bytes[0] == ' ', comma = glyph.bytes[0] == ',';
    // The room may end exactly where a word ends.
    if (space) wordEnd = end, wordColumns = used;
    if (used + glyph.columns > room) break;
    used += glyph.columns;
    end += glyph.bytes.size();
    if (comma) wordEnd = end, wordColumns = used;
  }
  if (wordColumns * 2 >= room && wordEnd > 0) end = wordEnd;
  return kj::str(text.slice(0, end), mark);
}

kj::String shortenedName(kj::StringPtr name, uint columns) {
  if (columnsOf(name) <= columns) return kj::str(name);
  if (columns == 0) return nullptr;
  auto glyphs = glyphsOf(name);
  // The longest start and end that fit beside the ellipsis.
  auto mark = ellipsisFor(columns);
  uint room = columns - columnsOf(mark), endRoom = (room + 1) / 2, startRoom = room - endRoom;
  size_t start = 0, end = glyphs.size();
  while (glyphs[start].columns <= startRoom) startRoom -= glyphs[start++].columns;
  while (glyphs[end - 1].columns <= endRoom) endRoom -= glyphs[--end].columns;
  kj::Vector<char> text;
  for (auto& glyph: glyphs.slice(0, start)) text.addAll(glyph.bytes);
  text.addAll(mark);
  for (auto& glyph: glyphs.slice(end, glyphs.size())) text.addAll(glyph.bytes);
  return kj::heapString(text);
}

kj::Array<kj::String> shortenedNames(kj::ArrayPtr<const kj::StringPtr> names, uint columns) {
  auto result = KJ_MAP(name, names) {
    return shortenedName(name, columns);
  };
  bool areDistinct = true;
  kj::HashMap<kj::StringPtr, kj::StringPtr> wholes;
  kj::HashMap<kj::StringPtr, uint> numbers;
  for (size_t i: kj::indices(names)) {
    auto name = names[i];
    auto& whole = wholes.findOrCreate(result[i], [&]() {
      return kj::HashMap<kj::StringPtr, kj::StringPtr>::Entry{result[i], name};
    });
    areDistinct = areDistinct && whole == name;
    uint next = numbers.size() + 1;
    numbers.findOrCreate(name, [&]() {
      return kj::HashMap<kj::StringPtr, uint>::Entry{name, next};
    });
  }
  if (areDistinct) return result;
  uint digits = kj::str(numbers.size()).size();
  uint room = columns - kj::min(columns, digits + 1);
  return KJ_MAP(name, names) {
    auto number = KJ_ASSERT_NONNULL(numbers.find(name));
    return shortenedName(kj::str(number, ' ', shortenedName(name, room)), columns);
  };
}

namespace {

// Wraps one line, which has no newline.
kj::String wrappedLine(kj::StringPtr line, uint columns) {
  if (columnsOf(line) <= columns) return kj::str(line);
  size_t indent = 0;
  while (indent < line.size() && line[indent] == ' ') indent++;
  auto margin = kj::str("\n", kj::repeat(' ', kj::min(indent + 2, columns / 2)));
  kj::Vector<char> text;
  uint used = 0;
  bool isFirst = true;
  for (size_t at = 0; at < line.size();) {
    size_t word = at;
    while (word < line.size() && line[word] == ' ') word++;
    size_t end = word;
    while (end < line.size() && line[end] != ' ') end++;
    uint width = columnsOf(line.slice(word, end));
    if (!isFirst && used + (word - at) + width > columns) {
      text.addAll(margin);
      used = margin.size() - 1 + width;
    } else {
      text.addAll(line.slice(at, word));
      used += word - at + width;
    }
    text.addAll(line.slice(word, end));
    isFirst = false;
    at = end;
  }
  return kj::heapString(text);
}

}  // namespace

kj::String wrapped(kj::StringPtr text, uint columns) {
  kj::Vector<kj::String> lines;
  for (;;) {
    KJ_IF_MAYBE(end, text.findFirst('\n')) {
      lines.add(wrappedLine(kj::heapString(text.slice(0, *end)), columns));
      text = text.slice(*end + 1);
    } else {
      lines.add(wrappedLine(text, columns));
      return kj::strArray(lines, "\n");
    }
  }
}

kj::String fitted(kj::StringPtr line, uint columns) {
  if (columnsOf(line) <= columns) return kj::str(line);
  auto parts = partsOf(line);
  KJ_IF_MAYBE(end, colonOf(parts[0])) {
    auto name = kj::heapString(parts[0].slice(0, *end));
    auto rest = kj::str(parts[0].slice(*end));
    // The name may take all columns that a single part leaves.
    uint left = parts.size() > 1 ? 0 : columns - kj::min(columns, columnsOf(rest));
    parts[0] = kj::str(shortenedName(name, kj::max(left, columns / 2)), rest);
  }
  auto text = kj::strArray(parts, GAP.cStr());
  while (columnsOf(text) > columns && parts.size() > 1) {
    // The last part stays as long as another part can be left out.
    if (parts.size() > 2) parts[parts.size() - 2] = kj::mv(parts.back());
    parts.removeLast();
    text = kj::strArray(parts, GAP.cStr());
  }
  return shortened(text, columns);
}

}  // namespace runner

#include "runner/fitted_text.h"

#include <kj/vector.h>
#include <string.h>

namespace runner {
namespace {

constexpr kj::StringPtr GAP = "  "_kj;
constexpr kj::StringPtr ELLIPSIS = "…"_kj;

bool isFirstByte(char c) {
  return (c & 0xc0) != 0x80;
}

// The parts of `line` that GAP separates.
kj::Vector<kj::String> partsOf(kj::StringPtr line) {
  kj::Vector<kj::String> parts;
  while (auto gap = strstr(line.cStr(), GAP.cStr())) {
    parts.add(kj::heapString(line.begin(), gap - line.begin()));
    line = line.slice(gap - line.begin() + GAP.size());
  }
  parts.add(kj::str(line));
  return parts;
}

}  // namespace

uint columnsOf(kj::StringPtr text) {
  uint columns = 0;
  for (char c: text) columns += isFirstByte(c);
  return columns;
}

kj::String shortened(kj::StringPtr text, uint columns) {
  if (columnsOf(text) <= columns) return kj::str(text);
  // One column is for the ellipsis.
  uint room = kj::max(1u, columns) - 1;
  size_t end = 0, wordEnd = 0;
  uint used = 0, wordColumns = 0;
  for (; end < text.size(); end++) {
    if (isFirstByte(text[end]) && ++used > room) break;
    bool space = text[end] == ' ', comma = text[end] == ',';
    if (!space && !comma) continue;
    wordEnd = space ? end : end + 1;
    wordColumns = used;
  }
  // The room may end just where a word does.
  if (text[end] == ' ') wordEnd = end, wordColumns = room;
  if (wordColumns * 2 >= room && wordEnd > 0) end = wordEnd;
  return kj::str(text.slice(0, end), columns == 0 ? ""_kj : ELLIPSIS);
}

kj::String shortenedName(kj::StringPtr name, uint columns) {
  uint all = columnsOf(name);
  if (all <= columns) return kj::str(name);
  if (columns == 0) return nullptr;
  uint end = columns / 2;
  uint start = columns - 1 - end;
  kj::Vector<char> text;
  uint column = 0;
  bool isCut = false;
  for (char c: name) {
    column += isFirstByte(c);
    if (column <= start || column > all - end) {
      text.add(c);
    } else if (!isCut) {
      text.addAll(ELLIPSIS);
      isCut = true;
    }
  }
  return kj::heapString(text);
}

kj::String wrapped(kj::StringPtr text, uint columns, uint indent) {
  kj::Vector<kj::String> lines;
  kj::String line;
  uint used = 0;
  while (text.size() > 0) {
    size_t end = text.findFirst(' ').orDefault(text.size());
    auto word = kj::heapString(text.begin(), end);
    text = text.slice(kj::min(text.size(), end + 1));
    uint width = columnsOf(word);
    if (used > 0 && used + 1 + width > columns) {
      lines.add(kj::mv(line));
      line = kj::str(kj::repeat(' ', indent), word);
      used = indent + width;
    } else {
      line = used == 0 && lines.empty() ? kj::mv(word) : kj::str(line, ' ', word);
      used = columnsOf(line);
    }
  }
  lines.add(kj::mv(line));
  return kj::strArray(lines, "\n");
}

kj::String fitted(kj::StringPtr line, uint columns) {
  auto parts = partsOf(line);
  auto text = kj::str(line);
  while (columnsOf(text) > columns && parts.size() > 1) {
    // The last part stays as long as another one can go.
    if (parts.size() > 2) parts[parts.size() - 2] = kj::mv(parts.back());
    parts.removeLast();
    text = kj::strArray(parts, GAP.cStr());
  }
  return shortened(text, columns);
}

}  // namespace runner

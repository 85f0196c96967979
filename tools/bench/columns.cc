#include "tools/bench/columns.h"

#include <kj/vector.h>

namespace tools {
namespace {

using kj::uint;

// Counts code points: `3×3` takes three columns.
size_t widthOf(kj::StringPtr text) {
  size_t width = 0;
  for (char c: text) width += (c & 0xc0) != 0x80;
  return width;
}

void addSpaces(kj::Vector<char>& text, size_t count) {
  for (size_t i = 0; i < count; i++) text.add(' ');
}

kj::String line(
    kj::ArrayPtr<const kj::String> cells, kj::ArrayPtr<const size_t> widths, uint left) {
  kj::Vector<char> text;
  for (size_t i: kj::indices(cells)) {
    size_t free = widths[i] - widthOf(cells[i]);
    if (i > 0) addSpaces(text, 2);
    if (i >= left) addSpaces(text, free);
    text.addAll(cells[i]);
    if (i < left) addSpaces(text, free);
  }
  while (text.size() > 0 && text.back() == ' ') text.removeLast();
  text.add('\n');
  return kj::heapString(text);
}

}  // namespace

kj::String inColumns(const runner::TextTable& table, uint left) {
  auto widths = KJ_MAP(title, table.header) {
    return widthOf(title);
  };
  for (auto& row: table.rows) {
    for (size_t i: kj::indices(row)) widths[i] = kj::max(widths[i], widthOf(row[i]));
  }
  kj::Vector<kj::String> lines;
  lines.add(line(table.header, widths, left));
  for (auto& row: table.rows) lines.add(line(row, widths, left));
  if (table.foot.size() > 0) lines.add(kj::str(table.foot, '\n'));
  return kj::strArray(lines, "");
}

}  // namespace tools

#include "runner/tables/terminal_table.h"

#include <kj/vector.h>
#include <unistd.h>

#include "configs/language/display_width.h"
#include "configs/language/printable.h"
#include "runner/system/command_line.h"
#include "runner/system/terminal.h"
#include "runner/text/fitted_text.h"

namespace runner {

using configs::columnsOf;

namespace {

constexpr uint GAP = 2;

// Returns `table` with cells as they are shown: without spaces for alignment, and without control
// characters, which would break the lines.
TextTable cleaned(const TextTable& table) {
  auto clean = [](const kj::Array<kj::String>& cells) {
    return KJ_MAP(cell, cells) {
      kj::StringPtr text = cell;
      while (text.startsWith(" ")) text = text.slice(1);
      return configs::withoutControls(text, ' ');
    };
  };
  auto rows = KJ_MAP(row, table.rows) {
    return clean(row);
  };
  return {clean(table.header), kj::mv(rows), nullptr};
}

bool isEmpty(const TextTable& table, size_t column) {
  for (auto& row: table.rows) {
    if (row[column].size() > 0) return false;
  }
  return table.rows.size() > 0;
}

// Returns the table's columns that are not empty, the most important one first.
kj::Array<size_t> byImportance(
    const TextTable& table, kj::ArrayPtr<const kj::StringPtr> important) {
  kj::Vector<size_t> order;
  auto isImportant = [&](kj::StringPtr title) {
    for (auto name: important) {
      if (name == title) return true;
    }
    return false;
  };
  auto add = [&](size_t i) {
    if (!isEmpty(table, i)) order.add(i);
  };
  for (auto name: important) {
    for (size_t i: kj::indices(table.header)) {
      if (table.header[i] == name) add(i);
    }
  }
  for (size_t i: kj::indices(table.header)) {
    if (!isImportant(table.header[i])) add(i);
  }
  return order.releaseAsArray();
}

// Returns how many columns of the terminal a column of the table takes.
uint widthOf(const TextTable& table, size_t column) {
  uint width = columnsOf(table.header[column]);
  for (auto& row: table.rows) width = kj::max(width, columnsOf(row[column]));
  return width;
}

// Returns the widths of the columns that are shown, and 0 for the others. Columns are taken in one
// order, up to the first one without room. A wider terminal therefore shows the same columns and
// more.
kj::Array<uint> widthsOf(
    const TextTable& table, kj::ArrayPtr<const size_t> byImportance, uint columns) {
  auto widths = kj::heapArray<uint>(table.header.size());
  for (auto& width: widths) width = 0;
  uint used = 0;
  for (size_t column: byImportance) {
    uint width = widthOf(table, column);
    // The first column is always shown. It takes at most half of the terminal, so that there is
    // room for figures.
    if (used == 0) width = kj::min(width, kj::max(1u, columns / 2));
    uint gap = used == 0 ? 0 : GAP;
    if (used + gap + width > columns) break;
    widths[column] = width;
    used += gap + width;
  }
  return widths;
}

// Shortens the names in a column to `columns`, so that different names stay different.
void shortenNames(TextTable& table, size_t column, uint columns) {
  auto names = KJ_MAP(row, table.rows)->kj::StringPtr {
    return row[column];
  };
  auto shortNames = shortenedNames(names, columns);
  for (size_t i: kj::indices(table.rows)) table.rows[i][column] = kj::mv(shortNames[i]);
  table.header[column] = shortenedName(table.header[column], columns);
}

kj::String lineOf(kj::ArrayPtr<const kj::String> cells, kj::ArrayPtr<const uint> widths,
    kj::ArrayPtr<const bool> ofNumbers) {
  kj::Vector<char> line;
  uint pending = 0;  // spaces before the next text; spaces at the end of a line are never written
  for (size_t i: kj::indices(cells)) {
    if (widths[i] == 0) continue;
    auto& text = cells[i];
    uint rest = widths[i] - columnsOf(text);
    if (ofNumbers[i]) pending += rest;
    if (text.size() > 0) {
      while (pending > 0) line.add(' '), pending--;
      line.addAll(text);
    }
    pending += GAP + (ofNumbers[i] ? 0 : rest);
  }
  line.add('\n');
  return kj::heapString(line);
}

}  // namespace

kj::String fittedTable(
    const TextTable& table, kj::ArrayPtr<const kj::StringPtr> important, uint columns) {
  auto shown = cleaned(table);
  auto order = byImportance(shown, important);
  auto widths = widthsOf(shown, order, columns);
  auto ofNumbers = KJ_MAP(i, kj::indices(shown.header)) {
    return isOfNumbers(shown, i);
  };
  if (order.size() > 0) shortenNames(shown, order[0], widths[order[0]]);
  kj::Vector<kj::String> lines;
  lines.add(lineOf(shown.header, widths, ofNumbers));
  for (auto& row: shown.rows) lines.add(lineOf(row, widths, ofNumbers));
  return kj::strArray(lines, "");
}

void printTable(const TextTable& table, kj::ArrayPtr<const kj::StringPtr> important) {
  KJ_IF_MAYBE(columns, terminalColumns(STDOUT_FILENO)) {
    print(fittedTable(table, important, *columns));
  } else {
    print(formatTable(table, TableFormat::MARKDOWN));
  }
}

}  // namespace runner

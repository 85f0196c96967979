#include "runner/text/text_table.h"

#include <kj/debug.h>
#include <kj/vector.h>

#include <cstdint>

#include "configs/language/failure.h"
#include "runner/text/numbers.h"

namespace runner {
namespace {

using Cells = kj::ArrayPtr<const kj::String>;

// Returns `text` in the form that it needs between two `|`.
kj::String markdownCell(kj::StringPtr text) {
  kj::Vector<char> cell;
  for (char c: text) {
    if (c == '|') cell.add('\\');
    cell.add(c == '\n' || c == '\r' ? ' ' : c);
  }
  return kj::heapString(cell);
}

kj::StringPtr trimmed(kj::StringPtr text) {
  while (text.startsWith(" ")) text = text.slice(1);
  return text;
}

kj::String formatRow(Cells cells, TableFormat format) {
  switch (format) {
    case TableFormat::MARKDOWN: {
      auto fields = KJ_MAP(cell, cells) {
        return markdownCell(cell);
      };
      return kj::str("| ", kj::strArray(fields, " | "), " |\n");
    }
    case TableFormat::NONE:
      return kj::str(kj::strArray(cells, "\t"), '\n');
    case TableFormat::CSV: {
      auto fields = KJ_MAP(cell, cells) {
        return csvField(trimmed(cell));
      };
      return kj::str(kj::strArray(fields, ","), '\n');
    }
  }
  KJ_UNREACHABLE;
}

// Whether two names are equal, where `-` and a space count as the same.
bool sameName(kj::StringPtr a, kj::StringPtr b) {
  if (a.size() != b.size()) return false;
  auto plain = [](char c) { return c == ' ' ? '-' : c; };
  for (size_t i: kj::indices(a)) {
    if (plain(a[i]) != plain(b[i])) return false;
  }
  return true;
}

bool isNumber(kj::StringPtr text) {
  if (text == "nan" || text == "inf" || text == "-inf") return true;
  bool digit = false;
  for (char c: text) {
    bool isDigit = '0' <= c && c <= '9';
    bool isExponent = digit && c == 'e';
    digit = digit || isDigit;
    if (!isDigit && !isExponent && c != '.' && c != ',' && c != '-' && c != '+') return false;
  }
  return digit;
}

size_t columnOf(const TextTable& table, kj::StringPtr file, kj::StringPtr name) {
  for (size_t i: kj::indices(table.header)) {
    if (sameName(table.header[i], name)) return i;
  }
  auto known = KJ_MAP(title, table.header) {
    return KJ_MAP(c, title) {
      return c == ' ' ? '-' : c;
    };
  };
  configs::fail(file, " has no column `", name, "`. It has ", kj::strArray(known, ", "));
}

}  // namespace

kj::String csvField(kj::StringPtr text) {
  bool plain = true;
  kj::Vector<char> quoted;
  for (char c: text) {
    if (c == ',' || c == '"' || c == '\n' || c == '\r') plain = false;
    if (c == '"') quoted.add('"');
    quoted.add(c);
  }
  if (plain) return kj::str(text);
  return kj::str('"', quoted, '"');
}

kj::String figureCell(kj::Maybe<double> value, uint decimals) {
  KJ_IF_MAYBE(v, value) return figureText(*v, decimals);
  return nullptr;
}

kj::String bytesCell(double bytes) {
  struct {
    double unit;
    kj::StringPtr name;
  } units[] = {{1 << 30, "GiB"_kj}, {1 << 20, "MiB"_kj}, {1 << 10, "KiB"_kj}};
  for (auto& unit: units) {
    if (bytes >= unit.unit) return kj::str(fixedPoint(bytes / unit.unit, 1), " ", unit.name);
  }
  return kj::str(wholeNumber(bytes), " bytes");
}

bool isOfNumbers(const TextTable& table, size_t column) {
  bool any = false;
  for (auto& row: table.rows) {
    auto text = trimmed(row[column]);
    if (text.size() == 0) continue;
    if (!isNumber(text)) return false;
    any = true;
  }
  return any;
}

TextTable selectColumns(
    const TextTable& table, kj::StringPtr file, kj::ArrayPtr<const kj::String> names) {
  auto columns = KJ_MAP(name, names) {
    return columnOf(table, file, name);
  };
  auto select = [&](Cells cells) {
    return KJ_MAP(column, columns) {
      return kj::str(cells[column]);
    };
  };
  auto rows = KJ_MAP(row, table.rows) {
    return select(row);
  };
  return {select(table.header), kj::mv(rows), kj::str(table.foot)};
}

kj::String formatTable(const TextTable& table, TableFormat format) {
  kj::Vector<kj::String> lines;
  lines.add(formatRow(table.header, format));
  if (format == TableFormat::MARKDOWN) {
    auto dashes = KJ_MAP(title, table.header) {
      return kj::str("---");
    };
    lines.add(formatRow(dashes, format));
  }
  for (auto& row: table.rows) lines.add(formatRow(row, format));
  if (format == TableFormat::MARKDOWN && table.foot.size() > 0) {
    lines.add(kj::str('\n', table.foot, '\n'));
  }
  return kj::strArray(lines, "");
}

kj::String formatTables(kj::ArrayPtr<const NamedTable> tables, TableFormat format) {
  kj::Vector<kj::String> parts;
  if (tables.size() == 0) return nullptr;
  if (format == TableFormat::CSV) {
    auto header = formatRow(tables[0].table.header, format);
    parts.add(kj::str("file,", header));
    for (auto& named: tables) {
      if (formatRow(named.table.header, format) != header) {
        configs::fail(tables[0].name, " and ", named.name,
            " have different columns, so they do not fit into one CSV table. Parse them one by "
            "one");
      }
      auto name = csvField(named.name);
      for (auto& row: named.table.rows) parts.add(kj::str(name, ',', formatRow(row, format)));
    }
    return kj::strArray(parts, "");
  }
  // Markdown needs an empty line before a table. Without it, the name would be part of the table.
  auto gap = format == TableFormat::MARKDOWN ? "\n\n" : "\n";
  for (auto& named: tables) parts.add(kj::str(named.name, gap, formatTable(named.table, format)));
  return kj::strArray(parts, "\n");
}

}  // namespace runner

// runner/text/text_table.h: a table whose cells are text, and the ways to write it.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

namespace runner {

using kj::uint;

enum class TableFormat {
  MARKDOWN,
  // Columns with tabs between them.
  NONE,
  // As RFC 4180 has it, but with `\n` at the line ends.
  CSV
};

// Each row has as many cells as the header.
struct TextTable {
  kj::Array<kj::String> header;
  kj::Array<kj::Array<kj::String>> rows;

  // A line under the table in Markdown; empty: none.
  kj::String foot;
};

// A table and the file that it was made of.
struct NamedTable {
  kj::String name;
  TextTable table;
};

// `value` as figureText() writes it; empty where it is not known.
kj::String figureCell(kj::Maybe<double> value, uint decimals);

// `1.5 MiB`; below a KiB `512 bytes`.
kj::String bytesCell(double bytes);

// Whether all cells of a column are numbers (`-1.5`, `12,000`, `1.76e32`, `nan`), empty ones aside.
bool isOfNumbers(const TextTable& table, size_t column);

// The columns `names`, in that order; `-` in a name is a space in the header or a `-`. Throws
// FAILED, with the file's name and the columns there are, if one is missing.
TextTable selectColumns(
    const TextTable& table, kj::StringPtr file, kj::ArrayPtr<const kj::String> names);

// The table as text, with a newline after each line. CSV leaves out the spaces before a cell's
// text. In Markdown a `|` within a cell is `\|`, and a line end a space.
kj::String formatTable(const TextTable& table, TableFormat format);

// Each table under a line with its name, an empty line between tables; but CSV is one table with
// the name in a first column `file`, and throws FAILED if the headers differ. Empty where there are
// no tables.
kj::String formatTables(kj::ArrayPtr<const NamedTable> tables, TableFormat format);

}  // namespace runner

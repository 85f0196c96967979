// runner/text/text_table.h: a table whose cells are text, and its formats.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

namespace runner {

using kj::uint;

// How a table is written.
enum class TableFormat {
  MARKDOWN,
  // Columns with tabs between them.
  NONE,
  // As in RFC 4180, but with `\n` at the line ends.
  CSV
};

// A table. Each row has as many cells as the header.
struct TextTable {
  kj::Array<kj::String> header;
  kj::Array<kj::Array<kj::String>> rows;

  // A line under the table in Markdown. Empty: no line.
  kj::String foot;
};

// A table and the file that it was made from.
struct NamedTable {
  kj::String name;
  TextTable table;
};

// Returns `value` as figureText() writes it, or an empty text if `value` is null.
kj::String figureCell(kj::Maybe<double> value, uint decimals);

// Returns a size as `1.5 MiB`, or below 1 KiB as `512 bytes`.
kj::String bytesCell(double bytes);

// Whether all cells of a column that are not empty are numbers (`-1.5`, `12,000`, `1.76e32`,
// `nan`).
bool isOfNumbers(const TextTable& table, size_t column);

// Returns the columns `names`, in that order. A `-` in a name matches a space or a `-` in the
// header. If a column is missing, throws FAILED with the file's name and the existing columns.
TextTable selectColumns(
    const TextTable& table, kj::StringPtr file, kj::ArrayPtr<const kj::String> names);

// Returns `text` as one CSV field, in quotes if necessary.
kj::String csvField(kj::StringPtr text);

// Returns the table as text, with a newline after each line. CSV leaves out the spaces before a
// cell's text. In Markdown a `|` within a cell becomes `\|`, and a line end becomes a space.
kj::String formatTable(const TextTable& table, TableFormat format);

// Returns each table under a line with its name, with an empty line between tables. CSV is one
// table with the name in a first column `file`, and throws FAILED if the headers differ. Returns an
// empty text if there are no tables.
kj::String formatTables(kj::ArrayPtr<const NamedTable> tables, TableFormat format);

}  // namespace runner

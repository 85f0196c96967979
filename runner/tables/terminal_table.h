// runner/tables/terminal_table.h: tables on a terminal, aligned, with as many columns as fit.
#pragma once

#include <kj/string.h>

#include "runner/text/text_table.h"

namespace runner {

using kj::uint;

// Returns `table` in aligned columns with two spaces between them and a newline after each line. No
// line takes more than `columns`. Columns whose cells are all empty are left out. The others are
// taken by importance, up to the first one without room: first those in `important`, in its order,
// then all others in the table's. A wider terminal therefore shows the columns of a narrower one
// and more. The most important column is always there, and takes at most half of the terminal:
// shortenedNames() shortens longer cells.
kj::String fittedTable(
    const TextTable& table, kj::ArrayPtr<const kj::StringPtr> important, uint columns);

// Prints `table` to stdout: as fittedTable() if that is a terminal, and otherwise as Markdown with
// all columns.
void printTable(const TextTable& table, kj::ArrayPtr<const kj::StringPtr> important);

}  // namespace runner

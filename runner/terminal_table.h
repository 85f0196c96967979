// runner/terminal_table.h: tables for people at a terminal: aligned columns, as many as fit.
#pragma once

#include <kj/string.h>

#include "runner/text_table.h"

namespace runner {

using kj::uint;

// `table` in aligned columns with two spaces between them and a newline after each line. No line
// takes more than `columns`. Columns whose cells are all empty are left out, and so are those for
// which there is no room. `important` names the columns that are kept first, in this order; all
// others follow in the table's order. The most important column is always there. It takes half of
// the terminal at most: longer cells are shortenedName().
kj::String fittedTable(
    const TextTable& table, kj::ArrayPtr<const kj::StringPtr> important, uint columns);

}  // namespace runner

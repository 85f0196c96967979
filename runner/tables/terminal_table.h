// runner/tables/terminal_table.h: tables for people at a terminal: aligned columns, as many as fit.
#pragma once

#include <kj/string.h>

#include "runner/text/text_table.h"

namespace runner {

using kj::uint;

// `table` in aligned columns with two spaces between them and a newline after each line. No line
// takes more than `columns`. Columns whose cells are all empty are left out. The others are taken
// in the order of their importance up to the first for which there is no room, so a wider terminal
// shows the columns of a narrower one and more: first those that `important` names, in its order,
// then all others in the table's. The most important column is always there. It takes half of the
// terminal at most: longer cells are shortenedNames().
kj::String fittedTable(
    const TextTable& table, kj::ArrayPtr<const kj::StringPtr> important, uint columns);

}  // namespace runner

// tools/bench/columns.h: writes a table for the terminal.
#pragma once

#include "runner/text/text_table.h"

namespace tools {

// Returns the table with aligned columns, two spaces apart. The first `left` columns are aligned at
// the left. The others are numbers, aligned at the right.
kj::String inColumns(const runner::TextTable& table, kj::uint left);

}  // namespace tools

// tools/bench/columns.h: a table for the terminal.
#pragma once

#include "runner/text/text_table.h"

namespace tools {

// The table with its columns under each other, two spaces apart: the first `left` begin at their
// left edge, the others, figures, end at their right one.
kj::String inColumns(const runner::TextTable& table, kj::uint left);

}  // namespace tools

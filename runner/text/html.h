// runner/text/html.h: writes texts and tables for HTML and SVG.
#pragma once

#include <kj/string.h>

#include "runner/text/text_table.h"

namespace runner {

// Returns `text` with `<`, `>`, `&` and quotes as entities, for content and attributes. Leaves out
// control characters, which a document must not contain, but keeps line ends and tabs.
kj::String escaped(kj::ArrayPtr<const char> text);

// Returns `table` as a `<table>` in a box that scrolls (class `box`). Cells of a column of numbers
// have class `n`. The foot of the table is left out.
kj::String htmlOf(const TextTable& table);

}  // namespace runner

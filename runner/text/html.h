// runner/text/html.h: texts and tables as they stand in HTML and SVG.
#pragma once

#include <kj/string.h>

#include "runner/text/text_table.h"

namespace runner {

// `text` with `<`, `>`, `&` and quotes written as entities, for content and attributes alike.
// Control characters, which no document may hold, are left out, line ends and tabs are not.
kj::String escaped(kj::ArrayPtr<const char> text);

// `table` as a `<table>` in a box that scrolls (class `box`). The cells of a column of numbers have
// class `n`. Its foot is left out.
kj::String htmlOf(const TextTable& table);

}  // namespace runner

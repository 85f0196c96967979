// configs/language/printable.h: makes text from any source safe to show on a terminal.
#pragma once

#include <kj/string.h>

namespace configs {

// Returns `text` for a message of one line. Control characters become `\x1b` and the like, so that
// a terminal does not interpret a name. Line ends and characters that change the direction of the
// text count as control characters. If the text has more than 4 KiB, because it repeats a very long
// name, a note of how many bytes were left out replaces its middle.
kj::String printable(kj::StringPtr text);

// The same for a text of several lines: keeps line ends and tabs.
kj::String printableLines(kj::StringPtr text);

// Returns `text` with `substitute` in place of each control character. Use it for text whose width
// on the terminal matters: each control character then takes one column.
kj::String withoutControls(kj::StringPtr text, char substitute);

}  // namespace configs

// configs/language/printable.h: makes text from any source safe to show on a terminal.
#pragma once

#include <kj/string.h>

namespace configs {

// Returns `text` for a message of one line. Control characters become `\x1b` and the like, so that
// a terminal does not interpret a name. Line ends and characters that change the direction of the
// text count as control characters. A text of more than 4 KiB, which repeats a very long name,
// loses its middle, and states how many bytes that is.
kj::String printable(kj::StringPtr text);

// The same for a text of several lines: keeps line ends and tabs.
kj::String printableLines(kj::StringPtr text);

// Returns `text` with `substitute` in place of each control character, for text whose width counts.
kj::String withoutControls(kj::StringPtr text, char substitute);

}  // namespace configs

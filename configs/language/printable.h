// configs/language/printable.h: makes text from any source safe to show on a terminal.
#pragma once

#include <kj/string.h>

namespace configs {

// Returns `text` for a message of one line. Control characters become `\x1b` and the like, so that
// a terminal does not obey a name. Line ends count as control characters.
kj::String printable(kj::StringPtr text);

// The same for a text of several lines: keeps line ends and tabs.
kj::String printableLines(kj::StringPtr text);

}  // namespace configs

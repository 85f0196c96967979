// configs/language/printable.h: text from anybody, made fit for a terminal.
#pragma once

#include <kj/string.h>

namespace configs {

// `text` for a message of one line: control characters become `\x1b` and the like, so that a
// terminal does not obey what stands in a name. Line ends count as control characters.
kj::String printable(kj::StringPtr text);

// The same for a text of several lines: line ends and tabs stay.
kj::String printableLines(kj::StringPtr text);

}  // namespace configs

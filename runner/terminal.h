// runner/terminal.h: the terminal that a stream may be, and texts that fit its width.
#pragma once

#include <kj/common.h>
#include <kj/string.h>

namespace runner {

using kj::uint;

struct TerminalSize {
  uint columns = 80;
  uint rows = 24;
};

// The size of the terminal behind `fd` at this moment, 80 × 24 if the terminal does not say. Null
// if `fd` is not a terminal.
kj::Maybe<TerminalSize> terminalSize(int fd);

// How many columns `text` (UTF-8) takes. Each character counts as one.
uint columnsOf(kj::StringPtr text);

// `text` if it fits into `columns`, else its start and `…`. It ends at a space or behind a comma
// where that costs no more than half of the room, else anywhere.
kj::String shortened(kj::StringPtr text, uint columns);

// `text` with line breaks in place of spaces, so that no line takes more than `columns`, unless a
// single word does. Lines after the first begin with `indent` spaces.
kj::String wrapped(kj::StringPtr text, uint columns, uint indent = 0);

// A line of parts with two spaces between them, such as progressText() makes, for `columns`
// columns. Where room is short, whole parts are left out: the one before the last first, then those
// before it, then the last. A first part that is too long by itself is shortened().
kj::String fitted(kj::StringPtr line, uint columns);

}  // namespace runner

// runner/fitted_text.h: texts that fit into so many columns, each as wide as a character.
#pragma once

#include <kj/common.h>
#include <kj/string.h>

namespace runner {

using kj::uint;

// How many columns `text` (UTF-8) takes. Each character counts as one.
uint columnsOf(kj::StringPtr text);

// `text` if it fits into `columns`, else its start and `…`. It ends at a space or behind a comma
// where that costs no more than half of the room, else anywhere.
kj::String shortened(kj::StringPtr text, uint columns);

// The same for a name, of which the end tells as much as the start: `…` replaces its middle.
kj::String shortenedName(kj::StringPtr name, uint columns);

// `text` with line breaks in place of spaces, so that no line takes more than `columns`, unless a
// single word does. Lines after the first begin with `indent` spaces.
kj::String wrapped(kj::StringPtr text, uint columns, uint indent = 0);

// A line of parts with two spaces between them, such as progressText() makes, for `columns`
// columns. Where room is short, whole parts are left out: the one before the last first, then those
// before it, then the last. A first part that is too long by itself is shortened().
kj::String fitted(kj::StringPtr line, uint columns);

}  // namespace runner

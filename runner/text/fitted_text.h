// runner/text/fitted_text.h: texts (UTF-8) that fit into so many columns of a terminal.
#pragma once

#include <kj/common.h>
#include <kj/string.h>

namespace runner {

using kj::uint;

// `text` if it fits into `columns`, else its start and `…`. It ends at a space or behind a comma
// where that costs no more than half of the room, else anywhere.
kj::String shortened(kj::StringPtr text, uint columns);

// The same for a name, of which the end tells as much as the start: `…` replaces its middle.
kj::String shortenedName(kj::StringPtr name, uint columns);

// `names` so that each fits into `columns` and no two different ones become equal: shortenedName(),
// with numbers before them (`2 grid/…5,seed=1`) where that would make two equal. Equal names have
// equal numbers, which count from 1.
kj::Array<kj::String> shortenedNames(kj::ArrayPtr<const kj::StringPtr> names, uint columns);

// `text`, of one or more lines, with line breaks in place of spaces, so that no line takes more
// than `columns`, unless a single word does. What is broken off a line is indented by two spaces
// more than the line.
kj::String wrapped(kj::StringPtr text, uint columns);

// A line of parts with two spaces between them, such as progressText() makes, for `columns`
// columns. Where room is short, a name that ends at the first `: ` takes half of it at most, as
// shortenedName(), or what a single part leaves. Then whole parts are left out: the one before the
// last first, then those before it, then the last. A first part that is too long by itself is
// shortened().
kj::String fitted(kj::StringPtr line, uint columns);

}  // namespace runner

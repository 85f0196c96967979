// runner/text/fitted_text.h: fits texts (UTF-8) into a number of terminal columns.
#pragma once

#include <kj/common.h>
#include <kj/string.h>

namespace runner {

using kj::uint;

// Returns `text` if it fits into `columns`, else its start and `…`. The start ends at a space or
// after a comma if that costs at most half of the room, else anywhere.
kj::String shortened(kj::StringPtr text, uint columns);

// Does the same for a name, whose end matters as much as its start: `…` replaces the middle.
kj::String shortenedName(kj::StringPtr name, uint columns);

// Shortens each of `names` to `columns` by shortenedName(). Different names stay different: where
// two would become equal, each gets a number (`2 grid/…5,seed=1`). Equal names get equal numbers.
// Numbers count from 1.
kj::Array<kj::String> shortenedNames(kj::ArrayPtr<const kj::StringPtr> names, uint columns);

// Returns `text`, of one or more lines, with line breaks in place of spaces. No line takes more
// than `columns`, unless a single word does. The rest of a broken line is indented by two spaces
// more than the line.
kj::String wrapped(kj::StringPtr text, uint columns);

// Fits a line of parts with two spaces between them, such as progressText() makes, into `columns`
// columns. If the line is too long, first shortens the name at its beginning, which ends at `: `,
// to half of the columns. If the line has only one part, the name may take all columns that the
// rest of this part leaves. Then leaves out whole parts: the last but one, then those before it,
// then the last. If the first part is still too long, shortened() shortens it.
kj::String fitted(kj::StringPtr line, uint columns);

}  // namespace runner

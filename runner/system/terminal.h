// runner/system/terminal.h: the terminal that a stream may be, and lines for the people in front of
// it.
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

// Its columns.
kj::Maybe<uint> terminalColumns(int fd);

// Whether the cursor of the terminal behind `fd` can be moved, so that a line can be rewritten in
// place. False if `fd` is not a terminal, or if TERM is `dumb`, empty or not set.
bool canMoveCursor(int fd);

// `text`, wrapped() to the columns of the terminal behind `fd`; as it is if `fd` is not a terminal.
kj::String wrappedFor(int fd, kj::StringPtr text);

// `text`, which ends with a space, and `path`. If the terminal behind `fd` has no room for both in
// one line, `path` has a line of its own, from which it can be copied.
kj::String withPath(int fd, kj::StringPtr text, kj::StringPtr path);

// Writes a line to standard error, which is where everything goes that a person is told and that is
// not a result. Control characters are shown as configs::printable() has them. On a terminal the
// line is wrapped(). Errors of writing are ignored.
void tell(kj::StringPtr line);

}  // namespace runner

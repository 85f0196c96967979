// runner/system/terminal.h: the terminal behind a stream, and lines for the person in front of it.
#pragma once

#include <kj/common.h>
#include <kj/string.h>

namespace runner {

using kj::uint;

struct TerminalSize {
  uint columns = 80;
  uint rows = 24;
};

// Returns the present size of the terminal behind `fd`, or 80 × 24 if the terminal does not say.
// Null if `fd` is not a terminal.
kj::Maybe<TerminalSize> terminalSize(int fd);

// Returns the columns of the terminal behind `fd`. Null if `fd` is not a terminal.
kj::Maybe<uint> terminalColumns(int fd);

// Whether the cursor of the terminal behind `fd` can be moved, so that a line can be rewritten in
// place. False if `fd` is not a terminal, or if TERM is `dumb`, empty or not set.
bool canMoveCursor(int fd);

// Returns `text` as wrapped() breaks it for the columns of the terminal behind `fd`. Unchanged if
// `fd` is not a terminal.
kj::String wrappedFor(int fd, kj::StringPtr text);

// Returns `text`, which ends with a space, followed by `path`. If the terminal behind `fd` has no
// room for both on one line, `path` is on a separate line, so that it can be copied.
kj::String withPath(int fd, kj::StringPtr text, kj::StringPtr path);

// Writes a line to standard error. All messages for people go there, and only results go to
// standard output. Control characters are shown as configs::printable() shows them. On a terminal,
// wrapped() breaks the line. Ignores write errors.
void tell(kj::StringPtr line);

}  // namespace runner

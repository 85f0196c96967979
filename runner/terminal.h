// runner/terminal.h: the terminal that a stream may be.
#pragma once

#include <kj/common.h>

namespace runner {

using kj::uint;

struct TerminalSize {
  uint columns = 80;
  uint rows = 24;
};

// The size of the terminal behind `fd` at this moment, 80 × 24 if the terminal does not say. Null
// if `fd` is not a terminal.
kj::Maybe<TerminalSize> terminalSize(int fd);

}  // namespace runner

#include "runner/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace runner {

kj::Maybe<TerminalSize> terminalSize(int fd) {
  if (isatty(fd) != 1) return nullptr;
  struct winsize size;
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return TerminalSize();
  return TerminalSize{size.ws_col, kj::max(1u, uint(size.ws_row))};
}

}  // namespace runner

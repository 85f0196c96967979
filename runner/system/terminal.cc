#include "runner/system/terminal.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "configs/language/display_width.h"
#include "configs/language/printable.h"
#include "runner/system/output.h"
#include "runner/text/fitted_text.h"

namespace runner {

kj::Maybe<TerminalSize> terminalSize(int fd) {
  if (isatty(fd) != 1) return nullptr;
  struct winsize size;
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return TerminalSize();
  return TerminalSize{size.ws_col, kj::max(1u, uint(size.ws_row))};
}

kj::Maybe<uint> terminalColumns(int fd) {
  return terminalSize(fd).map([](const TerminalSize& size) { return size.columns; });
}

bool canMoveCursor(int fd) {
  const char* set = ::getenv("TERM");
  kj::StringPtr term = set == nullptr ? "" : set;
  return isatty(fd) == 1 && term != "" && term != "dumb";
}

kj::String wrappedFor(int fd, kj::StringPtr text) {
  KJ_IF_MAYBE(columns, terminalColumns(fd)) return wrapped(text, *columns);
  return kj::str(text);
}

kj::String withPath(int fd, kj::StringPtr text, kj::StringPtr path) {
  auto line = kj::str(text, path);
  KJ_IF_MAYBE(columns, terminalColumns(fd)) {
    if (configs::columnsOf(line) <= *columns) return line;
    size_t end = text.size();
    while (end > 0 && text[end - 1] == ' ') end--;
    return kj::str(wrapped(kj::heapString(text.begin(), end), *columns), "\n", path);
  }
  return line;
}

void tell(kj::StringPtr line) {
  writeQuietly(STDERR_FILENO, kj::str(wrappedFor(STDERR_FILENO, configs::printable(line)), "\n"));
}

}  // namespace runner

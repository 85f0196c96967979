#include "runner/command_line.h"

#include <errno.h>
#include <kj/debug.h>
#include <unistd.h>

namespace runner {

namespace {

void writeAll(int fd, kj::StringPtr text) {
  auto rest = text.asArray();
  while (rest.size() > 0) {
    ssize_t n = ::write(fd, rest.begin(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // nobody reads it
    rest = rest.slice(n, rest.size());
  }
}

}  // namespace

void print(kj::StringPtr text) {
  writeAll(STDOUT_FILENO, text);
}

void CommandLine::endWith(ExitCode code) {
  ::_exit(code);
}

void CommandLine::warning(kj::StringPtr message) {
  writeAll(STDERR_FILENO, kj::str("warning: ", message, "\n"));
}

void CommandLine::error(kj::StringPtr message) {
  writeAll(STDERR_FILENO, kj::str("error: ", message, "\n"));
}

void CommandLine::exitError(kj::StringPtr message) {
  writeAll(STDERR_FILENO, kj::str(message, message.endsWith("\n") ? "" : "\n"));
  endWith(WRONG_INPUT);
}

void CommandLine::exitInfo(kj::StringPtr message) {
  print(kj::str(message, message.endsWith("\n") ? "" : "\n"));
  endWith(OK);
}

void CommandLine::run(kj::MainFunc main, int argc, char* argv[], int disconnected) {
  auto params = kj::heapArrayBuilder<kj::StringPtr>(kj::max(argc, 1) - 1);
  for (int i = 1; i < argc; i++) params.add(argv[i]);
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { main(programName, params); })) {
    // Lines within a message would be taken for further messages.
    auto text = kj::str(e->getDescription());
    for (char& c: text) {
      if (c == '\n') c = ' ';
    }
    error(text);
    bool lost = e->getType() == kj::Exception::Type::DISCONNECTED;
    ::_exit(lost ? disconnected : RUN_FAILED);
  }
  endWith(OK);
}

}  // namespace runner

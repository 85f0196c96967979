#include "runner/system/interrupts.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner/system/command_line.h"

namespace runner {
namespace {

TEST_CASE(
    "endAtInterrupt: a signal writes the words, whose memory is gone, without control "
    "characters") {
  int fds[2];
  KJ_SYSCALL(::pipe(fds));
  kj::AutoCloseFd toRead(fds[0]), toWrite(fds[1]);
  auto pid = ::fork();
  if (pid == 0) {
    ::dup2(toWrite, STDERR_FILENO);
    endAtInterrupt("earlier words");
    endAtInterrupt(kj::str("\nleft ", "a\x1b[31m", "\n"));
    ::raise(SIGTERM);
    ::_exit(0);
  }
  toWrite = nullptr;
  auto errors = kj::FdInputStream(kj::mv(toRead)).readAllText();
  int status;
  KJ_SYSCALL(::waitpid(pid, &status, 0));
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == INTERRUPTED);
  CHECK(errors == "\nleft a\\x1b[31m\n");
}

}  // namespace
}  // namespace runner

#include "runner/system/background.h"

#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "runner/system/command_line.h"
#include "runner/system/files.h"

namespace runner {

namespace {

kj::AutoCloseFd opened(kj::StringPtr path, int flags) {
  int raw = ::open(path.cStr(), flags | O_CLOEXEC, 0666);
  if (raw < 0) configs::fail("cannot open ", path, ": ", strerror(errno), "; ", otherRuns());
  return kj::AutoCloseFd(raw);
}

// Returns the exit code of the new process.
int codeOf(pid_t pid) {
  int status;
  while (::waitpid(pid, &status, 0) < 0) KJ_REQUIRE(errno == EINTR, "cannot wait", errno);
  return WIFEXITED(status) ? WEXITSTATUS(status) : RUN_FAILED;
}

}  // namespace

Background::Background(kj::FunctionParam<int(pid_t)> begun) {
  int fds[2];
  KJ_SYSCALL(::pipe2(fds, O_CLOEXEC));
  kj::AutoCloseFd read(fds[0]);
  old = kj::AutoCloseFd(fds[1]);
  pid_t pid;
  KJ_SYSCALL(pid = ::fork(), "cannot start a process");
  if (pid == 0) {
    KJ_SYSCALL(::setsid());
    return;
  }
  old = nullptr;
  char byte;
  ssize_t n;
  while ((n = ::read(read, &byte, 1)) < 0 && errno == EINTR) {
  }
  ::_exit(n == 1 ? begun(pid) : codeOf(pid));
}

void Background::ready(kj::StringPtr path) {
  auto input = opened("/dev/null", O_RDONLY);
  auto output = opened(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND);
  KJ_SYSCALL(::dup2(input, STDIN_FILENO));
  KJ_SYSCALL(::dup2(output, STDOUT_FILENO));
  KJ_SYSCALL(::dup2(output, STDERR_FILENO));
  KJ_SYSCALL(::write(old, "r", 1));
  old = nullptr;
}

}  // namespace runner

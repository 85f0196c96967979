#include "tests/in_child.h"

#include <kj/debug.h>
#include <kj/io.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tests {

ChildEnd inChild(kj::FunctionParam<void()> act) {
  int fds[2];
  KJ_SYSCALL(::pipe(fds));
  kj::AutoCloseFd toRead(fds[0]), toWrite(fds[1]);
  pid_t pid;
  KJ_SYSCALL(pid = ::fork());
  if (pid == 0) {
    ::dup2(toWrite, STDERR_FILENO);
    KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { act(); })) {
      (void)!::write(STDERR_FILENO, e->getDescription().begin(), e->getDescription().size());
      ::_exit(1);
    }
    ::_exit(0);
  }
  toWrite = nullptr;
  ChildEnd end;
  end.errors = kj::FdInputStream(kj::mv(toRead)).readAllText();
  KJ_SYSCALL(::waitpid(pid, &end.status, 0));
  return end;
}

}  // namespace tests

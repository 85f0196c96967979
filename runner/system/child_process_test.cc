// Children that do not end when they are killed.
#include "runner/system/child_process.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/function.h>
#include <kj/io.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/skip.h"

namespace runner {
namespace {

// Returns what `act` writes to stderr.
kj::String errorsOf(kj::FunctionParam<void()> act) {
  int ends[2];
  KJ_SYSCALL(::pipe2(ends, O_CLOEXEC));
  kj::AutoCloseFd toRead(ends[0]), toWrite(ends[1]);
  kj::AutoCloseFd before(::dup(STDERR_FILENO));
  KJ_SYSCALL(::dup2(toWrite.get(), STDERR_FILENO));
  act();
  KJ_SYSCALL(::dup2(before.get(), STDERR_FILENO));
  toWrite = nullptr;
  return kj::FdInputStream(toRead.get()).readAllText();
}

// A process that traces another one. The system reports the end of a traced process to its parent
// only when the tracer allows it.
class Tracer {
public:
  explicit Tracer(pid_t traced) {
    int ends[2];
    KJ_SYSCALL(::pipe2(ends, O_CLOEXEC));
    kj::AutoCloseFd toRead(ends[0]), toWrite(ends[1]);
    KJ_SYSCALL(pid = ::fork());
    if (pid == 0) {
      char traces = ::ptrace(PTRACE_SEIZE, traced, nullptr, nullptr) == 0;
      (void)!::write(toWrite.get(), &traces, 1);
      for (;;) ::pause();
    }
    char traces = 0;
    KJ_SYSCALL(::read(toRead.get(), &traces, 1));
    isAllowed = traces == 1;
  }
  ~Tracer() noexcept(false) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  KJ_DISALLOW_COPY(Tracer);

  bool isAllowed = false;

private:
  pid_t pid = -1;
};

TEST_CASE("ChildProcess: does not wait forever for a killed child that the kernel keeps") {
  kj::UnixEventPort::captureChildExit();
  auto io = kj::setupAsyncIo();
  kj::String words[] = {kj::str("sh"), kj::str("-c"), kj::str("echo $$; exec cat")};
  auto child = kj::heap<ChildProcess>("worker 1"_kj, kj::StringPtr("sh"), words, "first line"_kj,
      *io.lowLevelProvider, io.unixEventPort);
  char digits[16] = {};
  child->output->tryRead(digits, 1, sizeof(digits) - 1).wait(io.waitScope);
  auto pid = ::atoi(digits);
  Tracer tracer(pid);
  if (!tracer.isAllowed) SKIP_CASE("the system does not let a process trace another one");
  auto errors = errorsOf([&]() { child = nullptr; });
  CHECK(errors ==
        kj::str("warning: worker 1, process ", pid,
            ", was killed but does not end, because a device or a file system that it waits for "
            "does not answer. It is left behind\n"));
  CHECK(ChildProcess::leftBehind() == 1);
}

}  // namespace
}  // namespace runner

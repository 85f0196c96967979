#include "tools/bench_process.h"

#include <errno.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "configs/language/failure.h"

namespace tools {
namespace {

// A file without a name, which takes what a program writes.
kj::AutoCloseFd newSheet() {
  int fd;
  KJ_SYSCALL(fd = ::memfd_create("output", MFD_CLOEXEC));
  return kj::AutoCloseFd(fd);
}

kj::String read(kj::AutoCloseFd sheet) {
  KJ_SYSCALL(::lseek(sheet, 0, SEEK_SET));
  return kj::FdInputStream(kj::mv(sheet)).readAllText();
}

int waitFor(pid_t child) {
  int status;
  while (::waitpid(child, &status, 0) < 0) KJ_REQUIRE(errno == EINTR, strerror(errno));
  return status;
}

// While it lives, Ctrl-C ends the programs that this one runs, and not yet this one: so what it has
// to put away is put away. SIGTERM does end it.
class InterruptLater {
public:
  InterruptLater() {
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    KJ_SYSCALL(::sigprocmask(SIG_BLOCK, &interrupt, &before));
  }
  ~InterruptLater() noexcept(false) { ::sigprocmask(SIG_SETMASK, &before, nullptr); }
  KJ_DISALLOW_COPY(InterruptLater);

  // In the child.
  void forget() { ::sigprocmask(SIG_SETMASK, &before, nullptr); }
  // Throws if there was one.
  void check() {
    timespec none{};
    if (::sigtimedwait(&interrupt, nullptr, &none) == SIGINT) configs::fail("interrupted");
  }

private:
  sigset_t interrupt, before;
};

// The last processor that this process may use.
int lastProcessor() {
  cpu_set_t allowed;
  KJ_SYSCALL(::sched_getaffinity(0, sizeof(allowed), &allowed));
  int last = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) last = cpu;
  }
  return last;
}

}  // namespace

void dieWith(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
}

Ended runProgram(kj::ArrayPtr<const kj::String> words) {
  auto arguments = kj::heapArray<char*>(words.size() + 1);
  for (size_t i: kj::indices(words)) arguments[i] = const_cast<char*>(words[i].cStr());
  arguments[words.size()] = nullptr;
  auto output = newSheet(), errors = newSheet();
  pid_t parent = ::getpid();
  InterruptLater later;
  pid_t child;
  KJ_SYSCALL(child = ::fork());
  if (child == 0) {
    dieWith(parent);
    later.forget();
    // How a peer's threads wait is its own affair.
    for (auto name: {"OMP_NUM_THREADS", "OMP_WAIT_POLICY", "OMP_DYNAMIC"}) ::unsetenv(name);
    ::dup2(output, STDOUT_FILENO);
    ::dup2(errors, STDERR_FILENO);
    ::execvp(arguments[0], arguments.begin());
    ::_exit(127);
  }
  int status = waitFor(child);
  later.check();
  return {.exitCode = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
      .output = read(kj::mv(output)),
      .errors = read(kj::mv(errors))};
}

kj::Maybe<double> numberIn(kj::StringPtr json, kj::StringPtr key) {
  auto word = kj::str('"', key, "\":");
  const char* at = ::strstr(json.cStr(), word.cStr());
  if (at == nullptr) return nullptr;
  at += word.size();
  char* end;
  double value = ::strtod(at, &end);
  if (end == at) return nullptr;
  return value;
}

BusyCore::BusyCore() {
  int cpu = lastProcessor();
  pid_t parent = ::getpid();
  KJ_SYSCALL(child = ::fork());
  if (child == 0) {
    dieWith(parent);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ::sched_setaffinity(0, sizeof(one), &one);
    for (;;) asm volatile("");
  }
}

BusyCore::~BusyCore() noexcept(false) {
  ::kill(child, SIGKILL);
  waitFor(child);
}

}  // namespace tools

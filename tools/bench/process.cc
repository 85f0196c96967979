#include "tools/bench/process.h"

#include <errno.h>
#include <kj/debug.h>
#include <kj/time.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "configs/language/failure.h"

namespace tools {
namespace {

// The exit code of timeout(1).
constexpr int TIMED_OUT = 124;

// A file without a name, for the output of a program.
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

// While it lives, Ctrl-C ends the programs that this one runs, but not yet this one, so that it can
// clean up. SIGTERM does end it.
class InterruptLater {
public:
  InterruptLater() {
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    KJ_SYSCALL(::sigprocmask(SIG_BLOCK, &interrupt, &before));
  }
  ~InterruptLater() noexcept(false) { ::sigprocmask(SIG_SETMASK, &before, nullptr); }
  KJ_DISALLOW_COPY(InterruptLater);

  // Call it in the child.
  void forget() { ::sigprocmask(SIG_SETMASK, &before, nullptr); }
  // Throws if there was a Ctrl-C.
  void check() {
    timespec none{};
    if (::sigtimedwait(&interrupt, nullptr, &none) == SIGINT) configs::fail("interrupted");
  }

private:
  sigset_t interrupt, before;
};

// Returns the last processor that this process may use.
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

namespace {

kj::Array<char*> argumentsOf(kj::ArrayPtr<const kj::String> words) {
  auto arguments = kj::heapArray<char*>(words.size() + 1);
  for (size_t i: kj::indices(words)) arguments[i] = const_cast<char*>(words[i].cStr());
  arguments[words.size()] = nullptr;
  return arguments;
}

// Call it in the child.
[[noreturn]] void become(kj::ArrayPtr<char*> arguments) {
  // A peer decides itself how its threads wait.
  for (auto name: {"OMP_NUM_THREADS", "OMP_WAIT_POLICY", "OMP_DYNAMIC"}) ::unsetenv(name);
  ::execvp(arguments[0], arguments.begin());
  ::_exit(127);
}

int exitCodeOf(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Ended runProgram(kj::ArrayPtr<const kj::String> words) {
  auto arguments = argumentsOf(words);
  auto output = newSheet(), errors = newSheet();
  pid_t parent = ::getpid();
  InterruptLater later;
  pid_t child;
  KJ_SYSCALL(child = ::fork());
  if (child == 0) {
    dieWith(parent);
    later.forget();
    ::dup2(output, STDOUT_FILENO);
    ::dup2(errors, STDERR_FILENO);
    become(arguments);
  }
  int status = waitFor(child);
  later.check();
  return {.exitCode = exitCodeOf(status),
      .output = read(kj::mv(output)),
      .errors = read(kj::mv(errors))};
}

AskedProgram::AskedProgram(kj::ArrayPtr<const kj::String> words): errors(newSheet()) {
  auto arguments = argumentsOf(words);
  int ends[2];
  KJ_SYSCALL(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
  stream = kj::AutoCloseFd(ends[0]);
  kj::AutoCloseFd theirs(ends[1]);
  pid_t parent = ::getpid();
  KJ_SYSCALL(child = ::fork());
  if (child == 0) {
    dieWith(parent);
    ::setpgid(0, 0);
    ::dup2(theirs, STDIN_FILENO);
    ::dup2(theirs, STDOUT_FILENO);
    ::dup2(errors, STDERR_FILENO);
    become(arguments);
  }
  ::setpgid(child, child);  // whichever of the two processes is first
}

AskedProgram::~AskedProgram() noexcept(false) {
  if (exitCode != nullptr) return;
  ::killpg(child, SIGKILL);
  waitFor(child);
}

Ended AskedProgram::ask(uint limit_s) {
  KJ_REQUIRE(exitCode == nullptr, "it has ended");
  kj::Vector<char> line;
  if (::send(stream, "\n", 1, MSG_NOSIGNAL) == 1 && !readLine(line, limit_s)) {
    ::killpg(child, SIGKILL);
    exitCode = TIMED_OUT;
    waitFor(child);
    return {TIMED_OUT, nullptr, kj::str("took more than ", limit_s, " s")};
  }
  if (line.size() > 0) return {0, kj::heapString(line.asPtr()), nullptr};
  int code = exitCodeOf(waitFor(child));
  exitCode = code;
  return {code, nullptr, read(kj::mv(errors))};
}

// Reads a line. The line is empty if the program has ended. Returns false if the time is over.
bool AskedProgram::readLine(kj::Vector<char>& line, uint limit_s) {
  auto& clock = kj::systemPreciseMonotonicClock();
  auto until = clock.now() + limit_s * kj::SECONDS;
  for (;;) {
    auto left = until - clock.now();
    pollfd answer = {.fd = stream, .events = POLLIN, .revents = 0};
    int ready = left < 0 * kj::SECONDS ? 0 : ::poll(&answer, 1, int(left / kj::MILLISECONDS) + 1);
    if (ready == 0) return false;
    if (ready < 0) {
      KJ_REQUIRE(errno == EINTR, strerror(errno));
      continue;
    }
    char c;
    if (::recv(stream, &c, 1, 0) != 1) {
      line.clear();
      return true;
    }
    line.add(c);
    if (c == '\n') return true;
  }
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

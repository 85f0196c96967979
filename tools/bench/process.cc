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
#include "runner/system/command_line.h"

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

// A peer's own settings decide how its threads wait.
[[noreturn]] void becomePeer(kj::ArrayPtr<const kj::String> words) {
  for (auto name: {"OMP_NUM_THREADS", "OMP_WAIT_POLICY", "OMP_DYNAMIC"}) ::unsetenv(name);
  become(words);
}

}  // namespace

Child::Child(kj::FunctionParam<void()> work) {
  pid_t parent = ::getpid();
  KJ_SYSCALL(child = ::fork());
  if (child > 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  runner::CommandLine commandLine("bench");
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { work(); })) {
    commandLine.endWith(*e, runner::RUN_FAILED);
  }
  commandLine.exit();
}

Child::~Child() noexcept(false) {
  if (child == 0) return;
  ::kill(child, SIGKILL);
  wait();
}

int Child::wait() {
  int status;
  while (::waitpid(child, &status, 0) < 0) KJ_REQUIRE(errno == EINTR, strerror(errno));
  child = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void become(kj::ArrayPtr<const kj::String> words) {
  kj::Vector<char*> arguments;
  for (auto& word: words) arguments.add(const_cast<char*>(word.cStr()));
  arguments.add(nullptr);
  ::execvp(arguments[0], arguments.begin());
  ::_exit(127);
}

Ended runProgram(kj::ArrayPtr<const kj::String> words) {
  auto output = newSheet(), errors = newSheet();
  InterruptLater later;
  Child child([&]() {
    later.forget();
    ::dup2(output, STDOUT_FILENO);
    ::dup2(errors, STDERR_FILENO);
    becomePeer(words);
  });
  int exitCode = child.wait();
  later.check();
  return {exitCode, read(kj::mv(output)), read(kj::mv(errors))};
}

AskedProgram::AskedProgram(kj::ArrayPtr<const kj::String> words): errors(newSheet()) {
  int ends[2];
  KJ_SYSCALL(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
  stream = kj::AutoCloseFd(ends[0]);
  kj::AutoCloseFd theirs(ends[1]);
  auto started = kj::heap<Child>([&]() {
    ::setpgid(0, 0);
    ::dup2(theirs, STDIN_FILENO);
    ::dup2(theirs, STDOUT_FILENO);
    ::dup2(errors, STDERR_FILENO);
    becomePeer(words);
  });
  ::setpgid(started->pid(), started->pid());  // whichever of the two processes is first
  child = kj::mv(started);
}

AskedProgram::~AskedProgram() noexcept(false) {
  KJ_IF_MAYBE(running, child) ::killpg((*running)->pid(), SIGKILL);
}

Ended AskedProgram::ask(uint limit_s) {
  auto& running = *KJ_REQUIRE_NONNULL(child, "it has ended");
  kj::Vector<char> line;
  if (::send(stream, "\n", 1, MSG_NOSIGNAL) == 1 && !readLine(line, limit_s)) {
    ::killpg(running.pid(), SIGKILL);
    child = nullptr;
    return {TIMED_OUT, nullptr, kj::str("took more than ", limit_s, " s")};
  }
  if (line.size() > 0) return {0, kj::heapString(line.asPtr()), nullptr};
  int exitCode = running.wait();
  child = nullptr;
  return {exitCode, nullptr, read(kj::mv(errors))};
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

kj::String Ended::reason() const {
  auto lines = linesOf(errors);
  for (auto& line: lines) {
    if (line.startsWith("Traceback")) return kj::mv(lines.back());
  }
  return lines.size() > 0 ? kj::mv(lines.front()) : kj::str("exit code ", exitCode);
}

kj::Vector<kj::String> linesOf(kj::StringPtr text) {
  kj::Vector<kj::String> lines;
  for (auto& line: split(text, '\n')) {
    if (line.size() > 0) lines.add(kj::mv(line));
  }
  return lines;
}

kj::Vector<kj::String> split(kj::StringPtr text, char separator) {
  kj::Vector<kj::String> parts;
  for (;;) {
    KJ_IF_MAYBE(end, text.findFirst(separator)) {
      parts.add(kj::heapString(text.begin(), *end));
      text = text.slice(*end + 1);
    } else {
      parts.add(kj::str(text));
      return parts;
    }
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

kj::Vector<Core> allowedCores() {
  cpu_set_t allowed;
  KJ_SYSCALL(::sched_getaffinity(0, sizeof(allowed), &allowed));
  kj::Vector<Core> cores;
  for (Core core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.add(core);
  }
  return cores;
}

void bindTo(Core core) {
  if (core == ANY_CORE) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  KJ_SYSCALL(::sched_setaffinity(0, sizeof(one), &one));
}

BusyCore::BusyCore()
    : child([last = allowedCores().back()]() {
        bindTo(last);
        for (;;) asm volatile("");
      }) {}

}  // namespace tools

#include "runner/system/child_process.h"

#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <kj/vector.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "configs/language/warning.h"
#include "runner/system/own_program.h"

namespace runner {

namespace {

// How long a killed process may take to end. Usually it takes a few milliseconds, but the kernel
// lets it wait for a device first. Shorter than the usual cluster.silence_timeout_s, because the
// event loop waits, too.
constexpr int KILLED_MS_MAX = 4000;

std::atomic<uint> leftBehindCount{0};

struct Pipe {
  kj::AutoCloseFd read;
  kj::AutoCloseFd write;
};

Pipe newPipe() {
  int fds[2];
  KJ_SYSCALL(::pipe2(fds, O_CLOEXEC));
  return {kj::AutoCloseFd(fds[0]), kj::AutoCloseFd(fds[1])};
}

// Writes a line that the launcher takes as the reason why the role ended.
void say(const char* text) {
  (void)!::write(STDERR_FILENO, text, strlen(text));
}

// Sets the signals that this thread blocks. Returns those that it blocked before.
sigset_t blockSignals(const sigset_t& signals) {
  sigset_t before;
  KJ_SYSCALL(::pthread_sigmask(SIG_SETMASK, &signals, &before));
  return before;
}

// Runs in the child, which begins with all signals blocked. Otherwise a signal could run one of the
// launcher's handlers here, which would print the launcher's messages. Nothing here may allocate.
[[noreturn]] void becomeProgram(pid_t launcher, const char* program, int input, int output,
    int errors, char* const* arguments) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launcher) ::_exit(1);
  // Ctrl-C goes to the launcher, which then ends the roles in order.
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGTERM, SIG_DFL);
  ::signal(SIGCHLD, SIG_DFL);
  // Under nohup, the launcher ignores this signal.
  if (::signal(SIGHUP, SIG_DFL) == SIG_IGN) ::signal(SIGHUP, SIG_IGN);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(input, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  if (program == nullptr) {
    becomeOwnProgram(arguments);
  } else {
    ::execvp(program, arguments);
  }
  say("error: cannot start ");
  say(program == nullptr ? "this program again" : program);
  say(": ");
  say(::strerrordesc_np(errno));
  say(program == nullptr ? "; is the file still there, and can it be executed?\n"
                         : "; is it installed, and on the path?\n");
  ::_exit(127);
}

// Returns a descriptor that identifies this process even after its end. Null if the system has
// none.
kj::Maybe<kj::AutoCloseFd> handleOf(pid_t pid) {
  int fd = ::syscall(SYS_pidfd_open, pid, 0);
  if (fd < 0) return nullptr;
  return kj::AutoCloseFd(fd);
}

// Adds those of `pid`'s children to `family`, and their children.
void addDescendants(pid_t pid, kj::Vector<kj::AutoCloseFd>& family) {
  auto path = kj::str("/proc/", pid, "/task/", pid, "/children");
  int raw = ::open(path.cStr(), O_RDONLY | O_CLOEXEC);
  if (raw < 0) return;
  kj::AutoCloseFd file(raw);
  auto text = kj::FdInputStream(file.get()).readAllText();
  char* next = text.begin();
  while (auto child = ::strtol(next, &next, 10)) {
    KJ_IF_MAYBE(fd, handleOf(child)) family.add(kj::mv(*fd));
    addDescendants(child, family);
  }
}

// Waits for the end of a child that was killed, and removes it from the system's table of
// processes. Returns false if it does not end soon.
bool reap(pid_t child) {
  int status;
  KJ_IF_MAYBE(fd, handleOf(child)) {
    pollfd end = {fd->get(), POLLIN, 0};
    while (::poll(&end, 1, KILLED_MS_MAX) < 0 && errno == EINTR) {
    }
    return ::waitpid(child, &status, WNOHANG) != 0;
  }
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return true;
}

kj::Vector<kj::AutoCloseFd> descendantsOf(pid_t pid) {
  kj::Vector<kj::AutoCloseFd> family;
  addDescendants(pid, family);
  return family;
}

}  // namespace

ChildProcess::ChildProcess(kj::StringPtr name, kj::Maybe<kj::StringPtr> program,
    kj::ArrayPtr<const kj::String> arguments, kj::StringPtr firstLine,
    kj::LowLevelAsyncIoProvider& io, kj::UnixEventPort& port)
    : name(kj::str(name)), exit(nullptr) {
  auto in = newPipe();
  auto out = newPipe();
  auto err = newPipe();
  // The line is far shorter than a pipe's buffer, so the write does not block.
  kj::FdOutputStream(in.write.get()).write(firstLine.begin(), firstLine.size());
  auto argv = kj::heapArray<char*>(arguments.size() + 1);
  for (size_t i = 0; i < arguments.size(); i++) argv[i] = const_cast<char*>(arguments[i].cStr());
  argv[arguments.size()] = nullptr;

  const char* path = nullptr;
  KJ_IF_MAYBE(other, program) path = other->cStr();
  pid_t launcher = ::getpid();
  sigset_t all;
  ::sigfillset(&all);
  auto before = blockSignals(all);
  KJ_DEFER(blockSignals(before));
  pid_t child;
  KJ_SYSCALL(child = ::fork(), "cannot start a process", name);
  if (child == 0) becomeProgram(launcher, path, in.read, out.write, err.write, argv.begin());
  pid = child;
  auto flags =
      kj::LowLevelAsyncIoProvider::TAKE_OWNERSHIP | kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC;
  input = io.wrapOutputFd(kj::mv(in.write), flags);
  output = io.wrapInputFd(kj::mv(out.read), flags);
  errors = io.wrapInputFd(kj::mv(err.read), flags);
  exit = port.onChildExit(pid);
}

ChildProcess::~ChildProcess() noexcept(false) {
  // The port clears `pid` when it has waited for the child. Otherwise the port's promise must be
  // dropped first, because this destructor waits for the process itself.
  exit = nullptr;
  KJ_IF_MAYBE(p, pid) {
    pid_t child = *p;
    pid = nullptr;
    ::kill(-child, SIGKILL);
    ::kill(child, SIGKILL);
    if (!reap(child)) {
      leftBehindCount++;
      configs::warn(kj::str(name, ", process ", child,
          ", was killed but does not end, because a device or a file system that it waits for does "
          "not answer. It is left behind"));
    }
  }
}

kj::Promise<int> ChildProcess::ended() {
  return kj::mv(exit);
}

void ChildProcess::terminate(kj::Duration grace) {
  KJ_IF_MAYBE(p, pid) {
    auto family = descendantsOf(*p);
    ::kill(-*p, SIGTERM);
    KJ_IF_MAYBE(fd, handleOf(*p)) {
      pollfd end = {fd->get(), POLLIN, 0};
      ::poll(&end, 1, grace / kj::MILLISECONDS);
    }
    for (auto& fd: family) ::syscall(SYS_pidfd_send_signal, fd.get(), SIGKILL, nullptr, 0);
  }
}

void ChildProcess::signal(int number) const {
  KJ_IF_MAYBE(p, pid) ::kill(*p, number);
}

uint ChildProcess::leftBehind() {
  return leftBehindCount;
}

bool ChildProcess::isStopped() const {
  KJ_IF_MAYBE(p, pid) {
    // WNOWAIT leaves the state in place, so that it stays visible until the child continues.
    siginfo_t info = {};
    int result = ::waitid(P_PID, *p, &info, WSTOPPED | WNOHANG | WNOWAIT);
    return result == 0 && info.si_pid == *p;
  }
  return false;
}

}  // namespace runner

#include "tests/command.h"

#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/time.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

namespace tests {

const uint PATIENCE_S = []() {
  auto set = ::getenv("PATIENCE_S");
  return set == nullptr ? 120u : uint(::atoi(set));
}();

namespace {

struct Pipe {
  kj::AutoCloseFd read;
  kj::AutoCloseFd write;
};

Pipe newPipe() {
  int fds[2];
  KJ_SYSCALL(::pipe2(fds, O_CLOEXEC));
  return {kj::AutoCloseFd(fds[0]), kj::AutoCloseFd(fds[1])};
}

bool sameName(kj::StringPtr a, kj::StringPtr b) {
  auto nameOf = [](kj::StringPtr text) {
    return text.slice(0, text.findFirst('=').orDefault(text.size()));
  };
  return nameOf(a) == nameOf(b);
}

// The arguments of exec: pointers to the texts, then null.
kj::Array<char*> pointersTo(kj::ArrayPtr<const kj::String> texts) {
  auto result = kj::heapArray<char*>(texts.size() + 1);
  for (size_t i: kj::indices(texts)) result[i] = const_cast<char*>(texts[i].cStr());
  result[texts.size()] = nullptr;
  return result;
}

kj::Array<kj::String> environmentWith(kj::ArrayPtr<const kj::StringPtr> changes) {
  kj::Vector<kj::String> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    bool replaced = false;
    for (auto change: changes) replaced = replaced || sameName(change, *entry);
    if (!replaced) result.add(kj::str(*entry));
  }
  for (auto change: changes) result.add(kj::str(change));
  return result.releaseAsArray();
}

// Appends what can be read now. Closes `fd` at the end of its data.
void take(kj::AutoCloseFd& fd, kj::Vector<char>& text) {
  char buffer[65536];
  while (fd != nullptr) {
    ssize_t n = ::read(fd, buffer, sizeof(buffer));
    if (n > 0) {
      text.addAll(buffer, buffer + n);
    } else if (n == 0) {
      fd = nullptr;
    } else if (errno != EINTR) {
      KJ_REQUIRE(errno == EAGAIN, strerror(errno));
      return;
    }
  }
}

// A descriptor that can be read when the process has ended; null if there is no such process.
kj::Maybe<kj::AutoCloseFd> endOf(pid_t pid) {
  int fd = ::syscall(SYS_pidfd_open, pid, 0);
  if (fd < 0) {
    KJ_REQUIRE(errno == ESRCH, strerror(errno));
    return nullptr;
  }
  return kj::AutoCloseFd(fd);
}

// Milliseconds from now, for poll().
class Deadline {
public:
  explicit Deadline(uint seconds): end(clock.now() + seconds * kj::SECONDS) {}
  int left_ms() const { return kj::max(int64_t(0), (end - clock.now()) / kj::MILLISECONDS); }

private:
  const kj::MonotonicClock& clock = kj::systemPreciseMonotonicClock();
  kj::TimePoint end;
};

// An empty text may be a null pointer, which memmem() does not allow.
bool contains(kj::ArrayPtr<const char> text, kj::StringPtr part) {
  return text.size() > 0 &&
         ::memmem(text.begin(), text.size(), part.begin(), part.size()) != nullptr;
}

}  // namespace

Command::Command(kj::ArrayPtr<const kj::StringPtr> words): Command(words, {}) {}

Command::Command(kj::ArrayPtr<const kj::StringPtr> words, const Surroundings& surroundings) {
  auto out = newPipe();
  auto err = newPipe();
  auto argumentTexts = KJ_MAP(word, words) {
    return kj::str(word);
  };
  auto arguments = pointersTo(argumentTexts);
  auto environmentTexts = environmentWith(surroundings.environment);
  auto environment = pointersTo(environmentTexts);

  KJ_SYSCALL(child = ::fork());
  if (child == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    int input = ::open("/dev/null", O_RDONLY);
    ::dup2(input, STDIN_FILENO);
    ::close(input);
    ::dup2(out.write, STDOUT_FILENO);
    ::dup2(err.write, STDERR_FILENO);
    bool there = surroundings.folder.size() == 0 || ::chdir(surroundings.folder.cStr()) == 0;
    if (there) ::execvpe(arguments[0], arguments.begin(), environment.begin());
    ::_exit(127);
  }
  ::setpgid(child, child);  // parent and child both call it, as either may be first
  endFd = KJ_ASSERT_NONNULL(endOf(child));
  outputFd = kj::mv(out.read);
  errorFd = kj::mv(err.read);
  for (int fd: {outputFd.get(), errorFd.get()}) KJ_SYSCALL(::fcntl(fd, F_SETFL, O_NONBLOCK));
}

Command::~Command() noexcept(false) {
  if (status != nullptr) return;
  killGroup(SIGKILL);
  reap();
}

void Command::kill(int signal) {
  if (status != nullptr) return;
  KJ_SYSCALL(::kill(child, signal));
}

void Command::killGroup(int signal) {
  if (status != nullptr) return;
  KJ_SYSCALL(::kill(-child, signal));
}

void Command::reap() {
  int value;
  KJ_SYSCALL(::waitpid(child, &value, 0));
  status = value;
}

bool Command::readUntil(uint seconds, kj::FunctionParam<bool()> enough) {
  Deadline deadline(seconds);
  for (;;) {
    if (enough()) return true;
    if (status != nullptr) return false;
    pollfd fds[] = {{outputFd.get(), POLLIN, 0}, {errorFd.get(), POLLIN, 0}, {endFd, POLLIN, 0}};
    int ready;
    KJ_SYSCALL(ready = ::poll(fds, kj::size(fds), deadline.left_ms()));
    if (ready == 0) return false;
    if (fds[2].revents != 0) reap();
    // Reads after reaping, so that the text has all that the program itself wrote.
    take(outputFd, outputText);
    take(errorFd, errorText);
  }
}

bool Command::waitForOutput(kj::StringPtr part, uint seconds) {
  return readUntil(seconds, [&]() { return contains(outputText, part); });
}

bool Command::waitForErrors(kj::StringPtr part, uint seconds) {
  return readUntil(seconds, [&]() { return contains(errorText, part); });
}

Ended Command::wait(uint seconds) {
  if (!readUntil(seconds, [&]() { return status != nullptr; })) {
    KJ_FAIL_REQUIRE("the program has not ended", seconds, output(), errors());
  }
  int value = KJ_ASSERT_NONNULL(status);
  Ended ended;
  if (WIFEXITED(value)) ended.exitCode = WEXITSTATUS(value);
  if (WIFSIGNALED(value)) ended.signal = WTERMSIG(value);
  ended.output = output();
  ended.errors = errors();
  return ended;
}

kj::Array<Process> processesWith(kj::StringPtr part) {
  kj::Vector<Process> found;
  for (auto& entry: std::filesystem::directory_iterator("/proc")) {
    pid_t pid = ::atoi(entry.path().filename().c_str());
    int raw = pid > 0 ? ::open((entry.path() / "cmdline").c_str(), O_RDONLY | O_CLOEXEC) : -1;
    if (raw < 0) continue;  // not a process, or one that has ended
    kj::AutoCloseFd fd(raw);
    char buffer[16384];
    ssize_t n = ::read(fd, buffer, sizeof(buffer));
    if (n <= 0) continue;
    for (char& c: kj::arrayPtr(buffer, n)) {
      if (c == '\0') c = ' ';
    }
    if (::memmem(buffer, n, part.begin(), part.size()) == nullptr) continue;
    found.add(Process{pid, kj::heapString(buffer, n)});
  }
  return found.releaseAsArray();
}

bool haveEnded(kj::ArrayPtr<const Process> processes, uint seconds) {
  Deadline deadline(seconds);
  for (auto& process: processes) {
    KJ_IF_MAYBE(fd, endOf(process.pid)) {
      pollfd end = {fd->get(), POLLIN, 0};
      int ready;
      KJ_SYSCALL(ready = ::poll(&end, 1, deadline.left_ms()));
      if (ready == 0) return false;
    }
  }
  return true;
}

kj::String newFolder() {
  auto parent = ::getenv("TEST_TMPDIR");
  auto path = kj::str(parent == nullptr ? "/tmp" : parent, "/folder-XXXXXX");
  KJ_REQUIRE(::mkdtemp(path.begin()) != nullptr, path, strerror(errno));
  return path;
}

kj::String readFile(kj::StringPtr path) {
  int raw;
  KJ_SYSCALL(raw = ::open(path.cStr(), O_RDONLY | O_CLOEXEC), path);
  kj::AutoCloseFd fd(raw);
  return kj::FdInputStream(fd.get()).readAllText();
}

void writeFile(kj::StringPtr path, kj::StringPtr text) {
  int raw;
  KJ_SYSCALL(raw = ::open(path.cStr(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), path);
  kj::AutoCloseFd fd(raw);
  kj::FdOutputStream(fd.get()).write(text.begin(), text.size());
}

}  // namespace tests

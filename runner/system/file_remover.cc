#include "runner/system/file_remover.h"

#include <errno.h>
#include <kj/debug.h>
#include <kj/vector.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace runner {

namespace {

// Says that it is ready, waits until the other end of `socket` is closed, and removes the files.
// Runs in a fork of a process that may have threads, so it only calls the system.
[[noreturn]] void waitAndRemove(int socket, kj::ArrayPtr<const char* const> paths) {
  // Ctrl-C, or a signal to the launcher's group, does not end this process.
  ::setsid();
  // It must not keep a stream open whose end another process waits for.
  ::dup2(socket, STDIN_FILENO);
  constexpr unsigned SECOND = STDIN_FILENO + 1, ALL = ~0u;
  if (::syscall(SYS_close_range, SECOND, ALL, 0) != 0) {
    rlimit limit;
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = 1024;
    for (unsigned fd = SECOND; fd < limit.rlim_cur; fd++) ::close(fd);
  }
  char byte = 0;
  ssize_t n = ::write(STDIN_FILENO, &byte, 1);
  do {
    n = ::read(STDIN_FILENO, &byte, 1);
  } while (n > 0 || (n < 0 && errno == EINTR));
  for (auto path: paths) ::unlink(path);
  ::_exit(0);
}

}  // namespace

FileRemover::FileRemover(kj::ArrayPtr<const kj::String> paths) {
  kj::Vector<const char*> words;
  for (auto& path: paths) words.add(path.cStr());
  int fds[2];
  KJ_SYSCALL(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
  kj::AutoCloseFd end(fds[0]);
  alive = kj::AutoCloseFd(fds[1]);
  KJ_SYSCALL(child = ::fork());
  if (child == 0) waitAndRemove(end, words);
  end = nullptr;
  char byte;
  KJ_SYSCALL(::read(alive, &byte, 1));
}

FileRemover::~FileRemover() noexcept {
  alive = nullptr;
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace runner

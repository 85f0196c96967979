#include "runner/system/file_remover.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/vector.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/command.h"

namespace runner {
namespace {

kj::Array<kj::String> filesIn(kj::StringPtr folder) {
  return kj::arr(kj::str(folder, "/one"), kj::str(folder, "/two"));
}

TEST_CASE("FileRemover: removes its files when it is destroyed, and no others") {
  auto folder = tests::newFolder();
  auto other = kj::str(folder, "/other");
  tests::writeFile(other, "text");
  {
    FileRemover remover(filesIn(folder));
    // Only one of the files exists.
    tests::writeFile(filesIn(folder)[0], "text");
  }
  CHECK(::access(filesIn(folder)[0].cStr(), F_OK) != 0);
  CHECK(::access(other.cStr(), F_OK) == 0);
}

TEST_CASE("FileRemover: removes its files when kill -9 ends the process and its group") {
  auto folder = tests::newFolder();
  int watch, ready[2];
  KJ_SYSCALL(watch = ::inotify_init1(IN_CLOEXEC));
  kj::AutoCloseFd events(watch);
  KJ_SYSCALL(::inotify_add_watch(events, folder.cStr(), IN_DELETE));
  KJ_SYSCALL(::pipe(ready));
  pid_t process;
  KJ_SYSCALL(process = ::fork());
  if (process == 0) {
    ::setpgid(0, 0);
    FileRemover remover(filesIn(folder));
    for (auto& path: filesIn(folder)) tests::writeFile(path, "text");
    (void)!::write(ready[1], "x", 1);
    for (;;) ::pause();
  }
  char byte;
  KJ_SYSCALL(::read(ready[0], &byte, 1));
  KJ_SYSCALL(::kill(-process, SIGKILL));
  KJ_SYSCALL(::waitpid(process, nullptr, 0));
  // The names come in events of variable length. Wait for two of them.
  size_t deleted = 0;
  while (deleted < 2) {
    alignas(inotify_event) char buffer[4096];
    ssize_t n;
    KJ_SYSCALL(n = ::read(events, buffer, sizeof(buffer)));
    for (ssize_t at = 0; at < n;) {
      deleted++;
      at += sizeof(inotify_event) + reinterpret_cast<inotify_event*>(buffer + at)->len;
    }
  }
  for (auto& path: filesIn(folder)) CHECK(::access(path.cStr(), F_OK) != 0);
}

}  // namespace
}  // namespace runner

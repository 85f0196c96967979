#include "runner/system/files.h"

#include <dirent.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/thread.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/command.h"
#include "tests/text.h"

namespace {

// The paths of synced descriptors at the moment of the sync, in order.
kj::Vector<kj::String> synced;
bool keepsSynced = false;

}  // namespace

// Replaces the system's fsync(), so that a test sees the calls.
extern "C" int fsync(int fd) {
  if (keepsSynced) {
    char path[4096] = {};
    KJ_SYSCALL(::readlink(kj::str("/proc/self/fd/", fd).cStr(), path, sizeof(path) - 1));
    synced.add(kj::str(path));
  }
  return ::syscall(SYS_fsync, fd);
}

namespace runner {
namespace {

using tests::contains;
using tests::newFolder;
using tests::readFile;

kj::Array<kj::String> namesIn(kj::StringPtr folder) {
  DIR* dir = ::opendir(folder.cStr());
  KJ_REQUIRE(dir != nullptr, folder);
  KJ_DEFER(::closedir(dir));
  kj::Vector<kj::String> names;
  while (dirent* entry = ::readdir(dir)) {
    kj::StringPtr name = entry->d_name;
    if (name != "." && name != "..") names.add(kj::str(name));
  }
  return names.releaseAsArray();
}

TEST_CASE("WholeFile: syncs the file before its rename, and the folder after it") {
  auto folder = newFolder();
  auto path = kj::str(folder, "/whole");
  keepsSynced = true;
  KJ_DEFER(keepsSynced = false; synced.clear());
  writeWhole(path, "text");
  REQUIRE(synced.size() == 2);
  CHECK(synced[0].startsWith(kj::str(path, ".part-")));
  CHECK(synced[1] == folder);
}

TEST_CASE("WholeFile: of several files, syncs each before its rename, and their folder once") {
  auto folder = newFolder();
  kj::Vector<kj::Own<WholeFile>> files;
  for (auto name: {"one", "two", "three"}) {
    files.add(kj::heap<WholeFile>(kj::str(folder, "/", name)));
    files.back()->append(kj::str(name).asBytes());
  }
  keepsSynced = true;
  KJ_DEFER(keepsSynced = false; synced.clear());
  WholeFile::finish(files);
  REQUIRE(synced.size() == 4);
  CHECK(synced[0].startsWith(kj::str(folder, "/one.part-")));
  CHECK(synced[1].startsWith(kj::str(folder, "/two.part-")));
  CHECK(synced[2].startsWith(kj::str(folder, "/three.part-")));
  CHECK(synced[3] == folder);
  for (auto name: {"one", "two", "three"}) CHECK(readFile(kj::str(folder, "/", name)) == name);
  CHECK(namesIn(folder).size() == 3);
}

TEST_CASE("WholeFile: replaces nothing but a regular file") {
  auto folder = newFolder();
  auto pipe = kj::str(folder, "/pipe"), link = kj::str(folder, "/link");
  KJ_SYSCALL(::mkfifo(pipe.cStr(), 0600));
  KJ_SYSCALL(::symlink("pipe", link.cStr()));
  for (kj::StringPtr path: {pipe.asPtr(), link.asPtr(), folder.asPtr()}) {
    KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { writeWhole(path, "text", "go away"); })) {
      CHECK(e->getDescription() ==
            kj::str("cannot write ", path, ": it exists but is not a regular file; go away"));
    } else {
      FAIL_CHECK("was written");
    }
  }
  struct stat found;
  KJ_SYSCALL(::stat(pipe.cStr(), &found));
  CHECK(S_ISFIFO(found.st_mode));
  CHECK(namesIn(folder).size() == 2);
}

TEST_CASE("WholeFile: two writers of one path do not disturb each other, and the last one stays") {
  auto folder = newFolder();
  auto path = kj::str(folder, "/whole");
  WholeFile first(path), second(path);
  first.append("first, which is longer"_kj.asBytes());
  second.append("second"_kj.asBytes());
  first.finish();
  CHECK(readFile(path) == "first, which is longer");
  second.finish();
  CHECK(readFile(path) == "second");
  CHECK(namesIn(folder).size() == 1);
}

TEST_CASE("WholeFile: many threads write one path, and every reader finds a complete file") {
  auto path = kj::str(newFolder(), "/whole");
  constexpr uint WRITERS = 4, TIMES = 50, SIZE = 10000;
  writeWhole(path, kj::str(kj::repeat('0', SIZE)));
  kj::Vector<kj::Own<kj::Thread>> writers;
  for (uint i = 0; i < WRITERS; i++) {
    writers.add(kj::heap<kj::Thread>([&path, i]() {
      auto text = kj::str(kj::repeat(char('1' + i), SIZE));
      for (uint n = 0; n < TIMES; n++) writeWhole(path, text);
    }));
  }
  for (uint n = 0; n < TIMES; n++) {
    auto text = readFile(path);
    CHECK(text == kj::str(kj::repeat(text[0], SIZE)));
  }
  writers.clear();
}

TEST_CASE("WholeFile: the next writer of a path removes the file of a killed process") {
  auto folder = newFolder();
  auto path = kj::str(folder, "/whole");
  int ready[2];
  KJ_SYSCALL(::pipe(ready));
  pid_t child;
  KJ_SYSCALL(child = ::fork());
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    WholeFile mine(path), other(kj::str(folder, "/other"));
    (void)!::write(ready[1], "x", 1);
    for (;;) ::pause();
  }
  char byte;
  KJ_SYSCALL(::read(ready[0], &byte, 1));
  // The other writer is alive, so its file stays.
  writeWhole(path, "text");
  CHECK(namesIn(folder).size() == 3);

  KJ_SYSCALL(::kill(child, SIGKILL));
  KJ_SYSCALL(::waitpid(child, nullptr, 0));
  writeWhole(path, "text");
  auto names = namesIn(folder);
  CHECK(names.size() == 2);
  // Temporary files of another path stay.
  for (auto& name: names) CHECK((name == "whole" || name.startsWith("other.part-")));
}

TEST_CASE("WholeFile: an unfinished file leaves nothing, and files of similar names stay") {
  auto folder = newFolder();
  auto path = kj::str(folder, "/whole");
  for (auto name:
      {"whole.part", "whole.part-", "whole.part-1", "whole.part-a-1", "whole.part-1-b"}) {
    tests::writeFile(kj::str(folder, "/", name), "the user's own");
  }
  { WholeFile file(path); }
  CHECK(namesIn(folder).size() == 5);
}

TEST_CASE("wholeFileOf: recognises the names of temporary files") {
  CHECK(KJ_ASSERT_NONNULL(wholeFileOf("a/b-c.md.part-12-0")) == "a/b-c.md");
  for (auto name: {"a/b.md", "a/b.md.part", "a/b.md.part-1", "a/b.md.part-x-1", "part-1-1"}) {
    CHECK(wholeFileOf(name) == nullptr);
  }
}

TEST_CASE("isForeignFile: only a file with another beginning would be a loss") {
  auto path = kj::str(newFolder(), "/page");
  CHECK_FALSE(isForeignFile(path, "<!DOC"));
  tests::writeFile(path, "");
  CHECK_FALSE(isForeignFile(path, "<!DOC"));
  tests::writeFile(path, "<!DOCTYPE html>");
  CHECK_FALSE(isForeignFile(path, "<!DOC"));
  tests::writeFile(path, "<!");
  CHECK(isForeignFile(path, "<!DOC"));
}

TEST_CASE("beginningOf: gives as many bytes as there are, and null for no file and an empty one") {
  auto path = kj::str(newFolder(), "/text");
  CHECK((beginningOf(path, 3) == nullptr));
  tests::writeFile(path, "");
  CHECK((beginningOf(path, 3) == nullptr));
  tests::writeFile(path, "text");
  CHECK(KJ_REQUIRE_NONNULL(beginningOf(path, 3)) == "tex");
  CHECK(KJ_REQUIRE_NONNULL(beginningOf(path, 100)) == "text");
}

TEST_CASE("removeTornLine: removes all that follows the last newline, however long it is") {
  auto path = kj::str(newFolder(), "/lines");
  removeTornLine(path);
  for (size_t size: {0, 1, (64 << 10) - 6, 64 << 10, 200000}) {
    CAPTURE(size);
    auto torn = kj::str(kj::repeat('\0', size));
    tests::writeFile(path, kj::str("whole\n", torn));
    removeTornLine(path);
    CHECK(tests::readFile(path) == "whole\n");
    tests::writeFile(path, torn);
    removeTornLine(path);
    CHECK(tests::readFile(path) == "");
  }
}

TEST_CASE("lastLineOf: returns the last whole line, however long it is, or nothing") {
  auto path = kj::str(newFolder(), "/lines");
  CHECK(lastLineOf(path) == "");
  auto large = kj::heapString(200000);
  for (char& c: large) c = 'x';
  struct Case {
    kj::String text;
    kj::StringPtr last;
  };
  Case cases[] = {{kj::str(), ""}, {kj::str("torn"), ""}, {kj::str("one\n"), "one"},
      {kj::str("one\ntwo\ntorn"), "two"}, {kj::str("one\n\n"), ""},
      {kj::str("one\n", large, "\n"), large}, {kj::str("one\n", large), "one"}};
  for (auto& each: cases) {
    tests::writeFile(path, each.text);
    CHECK(lastLineOf(path) == each.last);
  }
}

TEST_CASE("writeAll: waits for the reader of a non-blocking pipe") {
  int ends[2];
  KJ_SYSCALL(::pipe2(ends, O_CLOEXEC | O_NONBLOCK));
  kj::AutoCloseFd out(ends[0]), in(ends[1]);
  // More than a pipe holds.
  auto bytes = kj::heapArray<kj::byte>(1 << 20);
  for (auto i: kj::indices(bytes)) bytes[i] = i % 251;
  kj::Vector<kj::byte> received;
  {
    kj::Thread reader([&]() {
      kj::byte part[4096];
      for (pollfd readable{out, POLLIN, 0};;) {
        KJ_SYSCALL(::poll(&readable, 1, -1));
        ssize_t n;
        KJ_SYSCALL(n = ::read(out, part, sizeof(part)));
        if (n == 0) return;
        received.addAll(kj::arrayPtr(part, size_t(n)));
      }
    });
    CHECK(writeAll(in, bytes) == 0);
    in = nullptr;
  }
  CHECK(received.asPtr() == bytes.asPtr());
}

TEST_CASE(
    "LineFile: a line that does not fit leaves no part of it, and the next one stands alone") {
  auto path = kj::str(newFolder(), "/log");
  LineFile file(path);
  file.append("one");
  auto before = ::signal(SIGXFSZ, SIG_IGN);
  rlimit limit;
  KJ_SYSCALL(::getrlimit(RLIMIT_FSIZE, &limit));
  // From now on, this process can write at most 10 bytes to a file.
  rlimit small{10, limit.rlim_max};
  KJ_SYSCALL(::setrlimit(RLIMIT_FSIZE, &small));
  auto failure = kj::runCatchingExceptions([&]() { file.append("a long line"); });
  KJ_SYSCALL(::setrlimit(RLIMIT_FSIZE, &limit));
  ::signal(SIGXFSZ, before);
  CHECK(failure != nullptr);
  CHECK(readFile(path) == "one\n");
  file.append("two");
  CHECK(readFile(path) == "one\ntwo\n");
}

TEST_CASE("LineFile: refuses what is not a regular file, and does not wait for a FIFO's reader") {
  auto folder = newFolder();
  auto fifo = kj::str(folder, "/fifo");
  KJ_SYSCALL(::mkfifo(fifo.cStr(), 0666));
  for (auto path: {fifo.asPtr(), folder.asPtr(), "/dev/null"_kj}) {
    auto failure = kj::runCatchingExceptions([&]() { LineFile file(path); });
    CAPTURE(path);
    CHECK(KJ_ASSERT_NONNULL(failure).getDescription().startsWith(
        kj::str("cannot write ", path, ": it exists but is not a regular file; ")));
  }
}

TEST_CASE("whyUnwritable: changes nothing, and refuses a path that is not a regular file") {
  auto folder = newFolder();
  auto path = kj::str(folder, "/whole");
  CHECK(whyUnwritable(path) == nullptr);
  CHECK(namesIn(folder).size() == 0);
  CHECK(KJ_ASSERT_NONNULL(whyUnwritable(folder)) == "exists but is not a regular file");
  CHECK(KJ_ASSERT_NONNULL(whyUnwritable("/nonexistent/file")) == "No such file or directory");
}

}  // namespace
}  // namespace runner

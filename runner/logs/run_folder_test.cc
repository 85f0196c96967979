#include "runner/logs/run_folder.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/thread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

#include "tests/command.h"
#include "tests/text.h"

namespace runner {
namespace {

TEST_CASE("newRunFolder: counts on from the largest run number, and ignores other names") {
  auto runs = tests::newFolder();
  CHECK(newRunFolder(runs, "x").path == kj::str(runs, "/x/1"));
  for (auto name: {"18446744073709551615", "18446744073709551616", "20261122", "007", "0", "9x",
           "-5", "+6", " 8"}) {
    makeFolders(kj::str(runs, "/x/", name));
  }
  CHECK(newRunFolder(runs, "x").path == kj::str(runs, "/x/2"));
  makeFolders(kj::str(runs, "/x/41"));
  CHECK(newRunFolder(runs, "x").path == kj::str(runs, "/x/42"));
}

TEST_CASE("newRunFolder: works despite a temporary link that a killed process has left") {
  auto runs = tests::newFolder();
  makeFolders(kj::str(runs, "/x"));
  KJ_SYSCALL(::symlink("7", kj::str(runs, "/x/.last-1").cStr()));
  CHECK(newRunFolder(runs, "x").path == kj::str(runs, "/x/1"));
  char target[16] = {};
  KJ_SYSCALL(::readlink(kj::str(runs, "/x/last").cStr(), target, sizeof(target) - 1));
  CHECK(kj::StringPtr(target) == "1");
}

TEST_CASE("lastHolderOf: names the process that has the lock, and how it ended") {
  RunFolder folder{tests::newFolder()};
  CHECK(lastHolderOf(folder) == nullptr);
  CHECK(holderOf(folder) == "another process");
  auto take = [&]() { return KJ_ASSERT_NONNULL(lockOf(folder)); };
  auto read = [&]() { return KJ_ASSERT_NONNULL(lastHolderOf(folder)); };
  {
    auto lock = take();
    auto holder = read();
    CHECK(holder.process.open() != nullptr);
    CHECK(holder.process.pid == ::getpid());
    CHECK(holder.since_s > 1.7e9);
    CHECK_FALSE(holder.isInBackground);
    CHECK_FALSE(holder.isSweep);
    CHECK(holder.exitCode == nullptr);
    noteBackground(lock);
    noteSweep(lock);
    noteExit(lock, 130);
  }
  auto ended = read();
  CHECK(ended.isInBackground);
  CHECK(ended.isSweep);
  CHECK(KJ_ASSERT_NONNULL(ended.exitCode) == 130);
  // The next holder starts without these notes.
  auto lock = take();
  CHECK_FALSE(read().isInBackground);
  CHECK(read().exitCode == nullptr);
}

TEST_CASE("holderOf: names the machine of a process that is not on this one") {
  RunFolder folder{tests::newFolder()};
  auto lock = kj::str(folder.path, "/.lock");
  tests::writeFile(lock, "4711\nhost node2\nboot b\nbegun 7\nsince 1.5\n");
  CHECK(holderOf(folder) == "process 4711 on node2");
  // Earlier versions wrote only the number.
  tests::writeFile(lock, "4711\n");
  CHECK(holderOf(folder) == "process 4711");
}

TEST_CASE("isHeld: is true while a process holds the folder's lock, and does not take the lock") {
  RunFolder folder{tests::newFolder()};
  CHECK_FALSE(isHeld(folder));
  // No file was made.
  CHECK(::rmdir(folder.path.cStr()) == 0);
  {
    HeldRunFolder held(RunFolder{kj::str(folder.path)});
    CHECK(isHeld(folder));
    CHECK(holderOf(folder) == kj::str("process ", ::getpid()));
    CHECK(lockOf(folder) == nullptr);
  }
  CHECK_FALSE(isHeld(folder));

  std::atomic<bool> isOver = false;
  kj::Thread looker([&]() {
    while (!isOver) isHeld(folder);
  });
  KJ_DEFER(isOver = true);
  uint refused = 0;
  for (uint i = 0; i < 2000; i++) refused += lockOf(folder) == nullptr;
  CHECK(refused == 0);
}

TEST_CASE("lockOf: a lock that cannot be opened is an error, and not a file system without locks") {
  RunFolder folder{tests::newFolder()};
  KJ_SYSCALL(::mkdir(kj::str(folder.path, "/.lock").cStr(), 0700));
  auto e = KJ_REQUIRE_NONNULL(kj::runCatchingExceptions([&]() { lockOf(folder); }));
  CHECK(e.getType() == kj::Exception::Type::FAILED);
  CHECK(tests::contains(e.getDescription(), "/.lock: Is a directory"));
}

TEST_CASE(
    "newRunFolder: names a file or a folder that is in the way, keeps it, and makes nothing") {
  auto runs = tests::newFolder();
  auto refusal = [&]() {
    auto e = kj::runCatchingExceptions([&]() { newRunFolder(runs, "x"); });
    return kj::str(KJ_ASSERT_NONNULL(e).getDescription());
  };
  auto parent = kj::str(runs, "/x");
  tests::writeFile(parent, "mine");
  CHECK(
      refusal() == kj::str("cannot make the folder ", parent,
                       ": a file has that name; rename it, or choose another folder with --runs"));
  KJ_SYSCALL(::unlink(parent.cStr()));

  auto last = kj::str(parent, "/last");
  auto expected = kj::str("cannot make the link ", last,
      " to the newest run: something else has that name; rename it, or choose another folder with "
      "--runs");
  makeFolders(last);
  CHECK(refusal() == expected);
  KJ_SYSCALL(::rmdir(last.cStr()));
  tests::writeFile(last, "mine");
  CHECK(refusal() == expected);
  CHECK(tests::readFile(last) == "mine");
  KJ_SYSCALL(::unlink(last.cStr()));
  KJ_SYSCALL(::rmdir(parent.cStr()));
}

TEST_CASE("makeFolders: says which folder cannot be made, and where else to write") {
  auto e = kj::runCatchingExceptions([]() { makeFolders("/proc/foo/bar", "choose another"); });
  CHECK(tests::contains(KJ_ASSERT_NONNULL(e).getDescription(),
      "cannot make the folder /proc/foo: No such file or directory; choose another"));
}

}  // namespace
}  // namespace runner

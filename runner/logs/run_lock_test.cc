#include "runner/logs/run_lock.h"

#include <doctest/doctest.h>
#include <errno.h>
#include <kj/debug.h>
#include <kj/thread.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "tests/command.h"
#include "tests/in_child.h"
#include "tests/text.h"

namespace runner {
namespace {

// Lets flock() fail in this process, as on a file system without locks.
void forbidLocks() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_flock, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOLCK),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program = {kj::size(code), code};
  KJ_SYSCALL(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  KJ_SYSCALL(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
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
    lock.noteBackground();
    lock.noteSweep();
    lock.noteExit(130);
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

TEST_CASE("RunLock: until it accepts the folder, a holder that ends leaves the notes of the last") {
  RunFolder folder{tests::newFolder()};
  auto path = kj::str(folder.path, "/.lock");
  auto take = [&]() { return KJ_ASSERT_NONNULL(lockOf(folder)); };
  {
    // There is no last holder.
    auto lock = take();
    lock.mayRefuse(false);
    lock.noteRepeatsMembers();
    lock.noteExit(3);
  }
  auto before = tests::readFile(path);
  {
    auto lock = take();
    lock.mayRefuse(false);
    // A kill must not hide that the run repeats another one.
    CHECK(KJ_ASSERT_NONNULL(lastHolderOf(folder)).repeatsMembers);
    CHECK(lastExitCodeOf(folder) == nullptr);
    lock.noteExit(2);
    CHECK(tests::readFile(path) == before);
  }
  {
    auto lock = take();
    lock.mayRefuse(false);
    lock.accept();
    CHECK_FALSE(KJ_ASSERT_NONNULL(lastHolderOf(folder)).repeatsMembers);
    lock.noteExit(2);
    CHECK(KJ_ASSERT_NONNULL(lastExitCodeOf(folder)) == 2);
  }
  // Others wait for the end of the run's own job, even if it has ended once before.
  auto lock = take();
  lock.mayRefuse(true);
  lock.noteExit(1);
  CHECK(KJ_ASSERT_NONNULL(lastExitCodeOf(folder)) == 1);
}

TEST_CASE("lockSubmission: gives the right to one process at a time, beside the lock of the run") {
  RunFolder folder{tests::newFolder()};
  auto lock = lockOf(folder);
  {
    auto right = lockSubmission(folder);
    CHECK(right != nullptr);
    CHECK(lockSubmission(folder) == nullptr);
  }
  CHECK(lockSubmission(folder) != nullptr);
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

TEST_CASE("lockIfPossible: without locks, a folder is held until its holder releases it or ends") {
  RunFolder folder{tests::newFolder()};
  auto lock = kj::str(folder.path, "/.lock");
  auto other = [&](kj::StringPtr lines) { tests::writeFile(lock, kj::str("1\n", lines, "\n")); };
  auto end = tests::inChild([&]() {
    forbidLocks();
    auto e = KJ_ASSERT_NONNULL(kj::runCatchingExceptions([&]() { lockOf(folder); }));
    KJ_ASSERT(e.getType() == kj::Exception::Type::UNIMPLEMENTED);
    KJ_ASSERT(!isHeld(folder));
    {
      HeldRunFolder held({kj::str(folder.path)});
      KJ_ASSERT(isHeld(folder));
      KJ_ASSERT(lockIfPossible(folder) == nullptr);
    }
    KJ_ASSERT(!isHeld(folder));
    {
      HeldRunFolder held({kj::str(folder.path)});
      held.lock.noteExit(0);
      KJ_ASSERT(!isHeld(folder));
    }
    KJ_ASSERT(KJ_ASSERT_NONNULL(lastExitCodeOf(folder)) == 0);

    auto own = ProcessIdentity::of(::getpid());
    // Only the process of another machine may still exist: the others belong to a process of this
    // machine that has ended, and to this machine before it was restarted.
    other(kj::str("host ", own.host, "\nboot ", own.boot, "\nbegun 1"));
    KJ_ASSERT(!isHeld(folder));
    other(kj::str("host ", own.host, "\nboot earlier\nbegun 1"));
    KJ_ASSERT(!isHeld(folder));
    other("host node2\nboot b\nbegun 1");
    KJ_ASSERT(isHeld(folder));
    KJ_ASSERT(lockIfPossible(folder) == nullptr);
    // The job began again on this machine.
    ::setenv("SLURM_JOB_ID", "12", 1);
    other("host node2\nboot b\nbegun 1\njob 12\nrestarts 0");
    KJ_ASSERT(isHeld(folder));
    ::setenv("SLURM_RESTART_COUNT", "1", 1);
    KJ_ASSERT(!isHeld(folder));
    // Slurm says that the job is over.
    other("host node2\nboot b\nbegun 1\njob 11\nrestarts 0");
    KJ_ASSERT(isHeld(folder));
    noteSlurmJobIsOver(folder, "12");
    KJ_ASSERT(isHeld(folder));
    noteSlurmJobIsOver(folder, "11");
    KJ_ASSERT(!isHeld(folder));
    // A zombie has ended.
    auto zombie = ::fork();
    if (zombie == 0) ::_exit(0);
    siginfo_t about;
    KJ_SYSCALL(::waitid(P_PID, zombie, &about, WEXITED | WNOWAIT));
    auto its = ProcessIdentity::of(zombie);
    KJ_ASSERT(its.open() != nullptr);
    tests::writeFile(lock, kj::str(zombie, "\nhost ", its.host, "\nboot ", its.boot, "\nbegun ",
                               its.begun_ticks, "\n"));
    KJ_ASSERT(!isHeld(folder));
    other("host node2\nboot b\nbegun 1\nexit 0");
    KJ_ASSERT(lockIfPossible(folder) != nullptr);
  });
  INFO(end.errors);
  CHECK(end.status == 0);
  CHECK(tests::contains(end.errors, kj::str("only ", lock, " shows whether")));
}

}  // namespace
}  // namespace runner

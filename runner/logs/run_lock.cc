#include "runner/logs/run_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/time.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "configs/language/warning.h"
#include "runner/system/command_line.h"
#include "runner/system/files.h"
#include "runner/system/interrupts.h"
#include "runner/system/slurm_job.h"

namespace runner {

namespace {

kj::String lockFile(const RunFolder& folder) {
  return kj::str(folder.path, "/.lock");
}

kj::String submissionLockFile(const RunFolder& folder) {
  return kj::str(folder.path, "/.slurm_lock");
}

constexpr uint64_t LOCK_BYTES_MAX = 4096;

// Lines of a lock file.
constexpr kj::StringPtr IN_BACKGROUND = "in background"_kj;
constexpr kj::StringPtr BY_HAND = "started by hand"_kj;
constexpr kj::StringPtr OF_SWEEP = "for a sweep"_kj;
constexpr kj::StringPtr REPEATS_MEMBERS = "repeats members"_kj;
constexpr kj::StringPtr RELEASED = "released"_kj;

// Appends lines to a lock file. On a full disk, a lock of the file system holds without them.
void note(int fd, kj::StringPtr lines) {
  auto text = kj::str(lines, "\n");
  auto end = ::lseek(fd, 0, SEEK_END);
  if (end >= 0) (void)!::pwrite(fd, text.begin(), text.size(), end);
}

// Returns what the last holder has noted. Empty if that cannot be read.
kj::String notesIn(int fd) {
  auto text = kj::heapString(LOCK_BYTES_MAX);
  auto n = ::pread(fd, text.begin(), text.size(), 0);
  return kj::heapString(text.begin(), kj::max(n, ssize_t(0)));
}

// Replaces the lines of the last holder by those of this process.
void noteHolder(int fd) {
  auto own = ProcessIdentity::of(::getpid());
  double now_s = (kj::systemPreciseCalendarClock().now() - kj::UNIX_EPOCH) / kj::MILLISECONDS / 1e3;
  (void)!::ftruncate(fd, 0);
  note(fd, kj::str(own.pid, "\nhost ", own.host, "\nboot ", own.boot, "\nbegun ", own.begun_ticks,
               "\nsince ", now_s, "\njob ", ownSlurmJob().orDefault(nullptr), "\nrestarts ",
               ownSlurmRestarts()));
}

// Opens the file `name` of `folder`, which is locked and not replaced.
kj::AutoCloseFd openToLock(const RunFolder& folder, kj::StringPtr name) {
  makeFolders(folder.path);
  int raw = ::open(name.cStr(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (raw < 0) configs::fail("cannot write ", name, ": ", strerror(errno), "; ", otherRuns());
  return kj::AutoCloseFd(raw);
}

// What flock() has returned.
enum class Flock { TAKEN, HELD, NO_LOCKS, FAILED };

Flock takeFlock(int fd, int operation) {
  if (::flock(fd, operation | LOCK_NB) == 0) return Flock::TAKEN;
  if (errno == EWOULDBLOCK) return Flock::HELD;
  bool hasNoLocks = errno == ENOLCK || errno == EOPNOTSUPP || errno == ENOSYS;
  return hasNoLocks ? Flock::NO_LOCKS : Flock::FAILED;
}

// Whether the last holder still exists: see isHeld().
bool exists(const LockHolder& holder) {
  if (holder.exitCode != nullptr || holder.hasReleased) return false;
  auto& process = holder.process;
  if (process.isHere()) {
    // A zombie has ended, but can still be opened.
    KJ_IF_MAYBE(there, process.open()) return !waitForEnd(*there, 0);
    return false;
  }
  // Slurm starts a job whose node was lost again.
  KJ_IF_MAYBE(job, ownSlurmJob()) {
    if (holder.slurmJob == *job && holder.slurmRestarts < ownSlurmRestarts()) return false;
  }
  // This machine may have been restarted since.
  return process.host != ProcessIdentity::of(::getpid()).host;
}

bool hasExistingHolder(const RunFolder& folder) {
  KJ_IF_MAYBE(holder, lastHolderOf(folder)) return exists(*holder);
  return false;
}

RunLock lockOrFail(const RunFolder& folder, kj::StringPtr wayOut) {
  KJ_IF_MAYBE(lock, lockIfPossible(folder)) return kj::mv(*lock);
  refuseHeld(folder, wayOut);
}

}  // namespace

RunLock::RunLock(kj::AutoCloseFd ownFd, bool isOnlyWritten)
    : fd(kj::mv(ownFd)), isOnlyWritten(isOnlyWritten), before(notesIn(fd)) {
  noteHolder(fd);
}

RunLock::~RunLock() noexcept {
  if (fd == nullptr) return;
  if (notesInterrupts) writeAtInterrupt(-1, nullptr);
  if (isOnlyWritten) note(fd, RELEASED);
}

void RunLock::noteBackground() const {
  note(fd, IN_BACKGROUND);
}

void RunLock::noteByHand() const {
  note(fd, BY_HAND);
}

void RunLock::noteSweep() const {
  note(fd, OF_SWEEP);
}

void RunLock::noteRepeatsMembers() const {
  note(fd, REPEATS_MEMBERS);
}

void RunLock::noteExit(int code) const {
  if (isAccepted) return note(fd, kj::str("exit ", code));
  (void)!::ftruncate(fd, 0);
  (void)!::pwrite(fd, before.begin(), before.size(), 0);
}

void RunLock::noteInterrupts() const {
  static const auto line = kj::str("exit ", int(INTERRUPTED), "\n");
  writeAtInterrupt(fd, isAccepted ? line : before, !isAccepted);
  notesInterrupts = true;
}

void RunLock::mayRefuse(bool isAwaited) const {
  // Even if this process is killed, the run still repeats another one.
  bool repeats = ::strstr(before.cStr(), kj::str("\n", REPEATS_MEMBERS).cStr()) != nullptr;
  if (repeats) noteRepeatsMembers();
  isAccepted = before.size() == 0 || isAwaited;
}

void RunLock::accept() const {
  isAccepted = true;
  noteHolder(fd);
  if (notesInterrupts) noteInterrupts();
}

kj::Maybe<RunLock> lockOf(const RunFolder& folder) {
  auto fd = openToLock(folder, lockFile(folder));
  for (;;) {
    auto taken = takeFlock(fd, LOCK_EX);
    if (taken == Flock::TAKEN) return RunLock(kj::mv(fd), false);
    if (taken != Flock::HELD) {
      int error = errno;
      auto type = taken == Flock::NO_LOCKS ? kj::Exception::Type::UNIMPLEMENTED
                                           : kj::Exception::Type::FAILED;
      auto why =
          kj::str("cannot lock ", lockFile(folder), ": ", strerror(error), "; ", otherRuns());
      kj::throwFatalException(kj::Exception(type, __FILE__, __LINE__, kj::mv(why)));
    }
    // A process that calls isHeld() shares the lock for a moment. Only a holder does not share it.
    if (takeFlock(fd, LOCK_SH) == Flock::HELD) return nullptr;
  }
}

kj::Maybe<RunLock> lockIfPossible(const RunFolder& folder) {
  kj::Maybe<RunLock> lock;
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { lock = lockOf(folder); })) {
    if (e->getType() != kj::Exception::Type::UNIMPLEMENTED) kj::throwFatalException(kj::mv(*e));
    configs::warn(kj::str("the file system of ", folder.path, " has no locks, so only ",
        lockFile(folder), " shows whether a process works there. Do not start two commands there ",
        "at the same moment. If a process on another machine was killed, remove that file"));
    if (hasExistingHolder(folder)) return nullptr;
    lock = RunLock(openToLock(folder, lockFile(folder)), true);
    if (!hasExistingHolder(folder)) {
      configs::fail("cannot write ", lockFile(folder), " (is the disk full?); ", otherRuns());
    }
  }
  return lock;
}

bool isHeld(const RunFolder& folder) {
  // Opening a FIFO would wait for its writer.
  int raw = ::open(lockFile(folder).cStr(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (raw < 0) return false;
  kj::AutoCloseFd fd(raw);
  auto shared = takeFlock(fd, LOCK_SH);
  return shared == Flock::HELD || (shared == Flock::NO_LOCKS && hasExistingHolder(folder));
}

kj::String holderOf(const RunFolder& folder) {
  KJ_IF_MAYBE(holder, lastHolderOf(folder)) {
    auto& process = holder->process;
    if (process.isHere() || process.host.size() == 0) return kj::str("process ", process.pid);
    return kj::str("process ", process.pid, " on ", process.host);
  }
  return kj::str("another process");
}

void refuseHeld(const RunFolder& folder, kj::StringPtr wayOut) {
  configs::fail(
      holderOf(folder), " works in ", folder.path, "; wait until it has ended, or ", wayOut);
}

void noteSlurmJobIsOver(const RunFolder& folder, kj::StringPtr job) {
  KJ_IF_MAYBE(holder, lastHolderOf(folder)) {
    if (holder->slurmJob != job) return;
    int raw = ::open(lockFile(folder).cStr(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (raw < 0) return;
    kj::AutoCloseFd fd(raw);
    note(fd, RELEASED);
  }
}

kj::Maybe<kj::AutoCloseFd> lockSubmission(const RunFolder& folder) {
  auto name = submissionLockFile(folder);
  auto fd = openToLock(folder, name);
  auto taken = takeFlock(fd, LOCK_EX);
  if (taken == Flock::HELD) return nullptr;
  if (taken == Flock::NO_LOCKS) return kj::AutoCloseFd();
  if (taken == Flock::FAILED) {
    configs::fail("cannot lock ", name, ": ", strerror(errno), "; ", otherRuns());
  }
  return kj::mv(fd);
}

void awaitSubmission(const RunFolder& folder) {
  int raw = ::open(submissionLockFile(folder).cStr(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (raw < 0) return;
  kj::AutoCloseFd fd(raw);
  // Nothing has captured signals yet, so they end the process.
  while (::flock(fd, LOCK_SH) != 0 && errno == EINTR) {
  }
}

kj::Maybe<LockHolder> lastHolderOf(const RunFolder& folder) {
  constexpr double TIME_MAX_S = 1e11;  // no clock shows more
  kj::String text;
  auto read = [&]() { text = readRegular(lockFile(folder), LOCK_BYTES_MAX); };
  if (kj::runCatchingExceptions(read) != nullptr) return nullptr;
  LockHolder holder;
  holder.process.pid = ::atoi(text.cStr());
  if (holder.process.pid <= 0) return nullptr;
  for (kj::StringPtr rest = text;;) {
    KJ_IF_MAYBE(end, rest.findFirst('\n')) {
      auto line = kj::str(rest.slice(0, *end));
      rest = rest.slice(*end + 1);
      auto value = line.slice(line.findFirst(' ').orDefault(line.size() - 1) + 1);
      if (line.startsWith("host ")) holder.process.host = kj::str(value);
      if (line.startsWith("boot ")) holder.process.boot = kj::str(value);
      if (line.startsWith("begun ")) {
        holder.process.begun_ticks = ::strtoull(value.cStr(), nullptr, 10);
      }
      if (line.startsWith("since ")) {
        double since_s = ::strtod(value.cStr(), nullptr);
        if (since_s >= 0 && since_s < TIME_MAX_S) holder.since_s = since_s;
      }
      if (line.startsWith("job ")) holder.slurmJob = kj::str(value);
      if (line.startsWith("restarts ")) holder.slurmRestarts = ::strtoul(value.cStr(), nullptr, 10);
      if (line == IN_BACKGROUND) holder.isInBackground = true;
      if (line == BY_HAND) holder.startsNoRoles = true;
      if (line == OF_SWEEP) holder.isSweep = true;
      if (line == REPEATS_MEMBERS) holder.repeatsMembers = true;
      if (line == RELEASED) holder.hasReleased = true;
      if (line.startsWith("exit ")) holder.exitCode = ::atoi(value.cStr());
    } else {
      return holder;
    }
  }
}

kj::Maybe<int> lastExitCodeOf(const RunFolder& folder) {
  KJ_IF_MAYBE(holder, lastHolderOf(folder)) return holder->exitCode;
  return nullptr;
}

HeldRunFolder::HeldRunFolder(RunFolder ownFolder, kj::StringPtr wayOut)
    : folder(kj::mv(ownFolder)), lock(lockOrFail(folder, wayOut)) {}

HeldRunFolder::HeldRunFolder(RunFolder folder, RunLock lock)
    : folder(kj::mv(folder)), lock(kj::mv(lock)) {}

void HeldRunFolder::empty() const {
  emptyRunFolder(folder);
}

}  // namespace runner

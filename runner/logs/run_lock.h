// runner/logs/run_lock.h: the lock of a run's folder. One process at a time works there, and others
// see which one it is.
#pragma once

#include <kj/common.h>
#include <kj/io.h>
#include <kj/string.h>

#include "runner/logs/run_folder.h"
#include "runner/system/process_identity.h"

namespace runner {

// The lock of a run's folder, from when it was taken until the destructor, or until the process
// ends. The note functions leave notes for other processes, and ignore write errors.
class RunLock {
public:
  RunLock(RunLock&&) = default;
  RunLock& operator=(RunLock&&) = delete;
  ~RunLock() noexcept;
  KJ_DISALLOW_COPY(RunLock);

  // The holder writes what it says to RunFolder::output().
  void noteBackground() const;
  // The holder starts no roles.
  void noteByHand() const;
  // The run belongs to the holder's sweep.
  void noteSweep() const;
  // The run repeats the losses and joins of workers of another one.
  void noteRepeatsMembers() const;
  // How the holder ends.
  void noteExit(int code) const;
  // The holder was interrupted, if a signal ends it: see runner/system/interrupts.h.
  void noteInterrupts() const;

  // Until accept(), this process may still refuse to change the folder. If it ends before accept(),
  // noteExit() and noteInterrupts() restore the notes of the last holder instead. This has no
  // effect if nobody had the lock before, or if others wait for the exit code of this process
  // (`isAwaited`), because it is in the run's own job of Slurm.
  void mayRefuse(bool isAwaited) const;
  // Ends the effect of mayRefuse(). The notes that this process has made so far are lost. Only
  // noteInterrupts() stays in effect.
  void accept() const;

private:
  friend kj::Maybe<RunLock> lockOf(const RunFolder& folder);
  friend kj::Maybe<RunLock> lockIfPossible(const RunFolder& folder);

  RunLock(kj::AutoCloseFd fd, bool isOnlyWritten);

  kj::AutoCloseFd fd;
  bool isOnlyWritten;  // the file system has no locks
  kj::String before;   // what the last holder had noted
  mutable bool isAccepted = true;
  mutable bool notesInterrupts = false;
};

// Takes the lock of `folder`, and makes the folder if necessary. Null if another process, or
// another RunLock of this one, has the lock. Throws with path, cause and way out: UNIMPLEMENTED if
// the file system has no locks.
kj::Maybe<RunLock> lockOf(const RunFolder& folder);

// Does the same on a file system with locks. On one without (Lustre without its mount option
// `flock`), looks at what the last holder has written to the lock file: see isHeld(). Also warns,
// because two processes that take the lock at the same moment both get it.
kj::Maybe<RunLock> lockIfPossible(const RunFolder& folder);

// Whether another process, or another RunLock of this one, has that lock now. Changes nothing in
// the folder. On a file system without locks: whether the last holder still exists. A process of
// another machine counts as existing until it has noted there that it ends, or until
// noteSlurmJobIsOver() has noted that. It also counts as gone if Slurm has started its job again,
// and this process belongs to that job.
bool isHeld(const RunFolder& folder);

// Returns who has that lock, for messages: "process 4711", with " on node2" if that is another
// machine, or "another process" if it is not known.
kj::String holderOf(const RunFolder& folder);

// Throws that this process works in `folder`. `wayOut` says what else the user may do.
[[noreturn]] void refuseHeld(const RunFolder& folder, kj::StringPtr wayOut);

// Notes that the job of Slurm in which the last holder ran is over: see isHeld(). Has no effect if
// it ran in another job, or if the file system has locks. Ignores errors.
void noteSlurmJobIsOver(const RunFolder& folder, kj::StringPtr job);

// Takes a second lock, for a process that submits the run in `folder` to Slurm. Until the result is
// destroyed, the new job waits in awaitSubmission(), and so the caller may keep the lock of the
// run. Null if another process submits the run. On a file system without locks, the descriptor is
// empty, and the job does not wait.
kj::Maybe<kj::AutoCloseFd> lockSubmission(const RunFolder& folder);
// Waits until nobody has that lock. Call it before signals are handled.
void awaitSubmission(const RunFolder& folder);

// The process that has the lock of a folder, or had it last.
struct LockHolder {
  ProcessIdentity process;
  double since_s = 0;           // since 1970
  kj::String slurmJob;          // in which it runs: see ownSlurmJob(). Empty if there is none
  uint slurmRestarts = 0;       // how often Slurm had started that job again
  bool isInBackground = false;  // it writes what it says to RunFolder::output()
  bool startsNoRoles = false;   // it is a coordinator that was started by hand
  bool isSweep = false;         // it works on a sweep, and this folder has one of its runs
  bool repeatsMembers = false;  // the run repeats the losses and joins of workers of another one
  bool hasReleased = false;     // noted only on a file system without locks
  kj::Maybe<int> exitCode;      // null until noteExit()
};
// Reads which process has the lock, or had it last, from what it wrote to the lock file. Null if
// nobody ever had the lock, or wrote nothing (a full disk). Only isHeld() tells whether it has the
// lock now.
kj::Maybe<LockHolder> lastHolderOf(const RunFolder& folder);

// Returns the exit code that the process has noted. Null if it still works, or was killed.
kj::Maybe<int> lastExitCodeOf(const RunFolder& folder);

// A folder of which this process has the lock.
class HeldRunFolder {
public:
  // Takes the lock as lockIfPossible() does. Calls refuseHeld() if another process has it.
  explicit HeldRunFolder(RunFolder folder, kj::StringPtr wayOut = otherRuns());
  HeldRunFolder(RunFolder folder, RunLock lock);

  const RunFolder folder;
  const RunLock lock;

  // Removes the files that a run has written there, and nothing else. Keeps output() and
  // messages(), because this process may be writing to them.
  void empty() const;
};

}  // namespace runner

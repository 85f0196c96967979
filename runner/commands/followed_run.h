// runner/commands/followed_run.h: follows another process's run by reading its files.
#pragma once

#include <kj/async-io.h>
#include <kj/time.h>
#include <kj/vector.h>

#include "runner/commands/launched_runs.h"
#include "runner/launch/slurm_queue.h"

namespace runner {

// A file that another process appends to, maybe on another machine.
class GrowingFile {
public:
  explicit GrowingFile(kj::String path): path(kj::mv(path)) {}

  // Returns what was appended to the file since the last call. Empty while the file does not exist.
  // If the file was truncated since, returns all of it.
  kj::String more();
  // Whether the last call of more() found that the file was truncated. It may have grown again
  // since.
  bool hasBegunAnew() const { return begunAnew; }

  const kj::String path;

private:
  bool isAsBefore(int fd) const;

  off_t offset = 0;
  kj::String last;  // the bytes before `offset`, or the last few of them
  bool begunAnew = false;
};

// A run's log for people. It is truncated when the run goes back to a checkpoint.
class FollowedLog {
public:
  explicit FollowedLog(kj::String path): file(kj::mv(path)) {}

  // Returns what was added since the last call. After a truncation, that is the text behind the
  // lines that remained.
  kj::String more();
  // Whether the last call of more() found that the log was truncated.
  bool wasCut() const { return file.hasBegunAnew(); }

private:
  GrowingFile file;
  kj::Vector<char> read;
};

// A run or a sweep of another process or of a Slurm job.
class FollowedRun {
public:
  // Follows from the beginning. `tasks` is how many tasks the job asks for, for messages. Throws
  // for a sweep that was started without --detach, because only its terminal shows it. `io` must
  // outlive this object, and its port must capture child exits.
  FollowedRun(RunFolder folder, kj::AsyncIoContext& io, kj::Maybe<uint> tasks = nullptr);
  KJ_DISALLOW_COPY(FollowedRun);

  // Prints the run's output until the run is over. Says what a Slurm job waits for. Call once.
  kj::Promise<void> follow();
  // Resolves soon after output of follow() was lost: nobody reads it.
  kj::Promise<void> outputLost();
  // Prints what the run has written since its files were last read.
  void printMore();

  // Return how the run ended. Call them when it is over. reasonOfSlurm() is null if the run ended
  // by itself.
  LaunchEnd end() const;
  kj::Maybe<kj::String> reasonOfSlurm() const;

private:
  kj::Promise<void> look();
  kj::Promise<void> watchQueue();
  void note(const SlurmJob& found);
  bool isOver(bool held) const;

  const RunFolder folder;
  kj::AsyncIoContext& io;
  const kj::Maybe<uint> tasks;
  kj::Maybe<kj::String> job;
  SlurmQueue queue;
  FollowedLog said;
  GrowingFile messages;
  kj::Vector<char> message;    // the beginning of a line of `messages`
  bool isGone = false;         // no process of the job is left
  bool hasAnswer = true;       // whether Slurm has answered
  kj::Maybe<SlurmJob> newest;  // Slurm's last answer
  kj::String told;             // the last sentence that was printed about the job
};

}  // namespace runner

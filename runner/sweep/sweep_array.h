// runner/sweep/sweep_array.h: runs the runs of a sweep as the tasks of a job array of Slurm, and
// continues where an earlier call ended.
#pragma once

#include <kj/async-io.h>

#include "runner/launch/progress.h"
#include "runner/launch/slurm_queue.h"
#include "runner/sweep/sweep_folders.h"

namespace runner {

// The job array of one sweep. For one thread.
class SweepArray {
public:
  // Runs go to folders below `runs`. All arguments must outlive this object. `io`'s port must
  // capture child exits. The sweep must have no rule that stops runs, because nobody stops them.
  SweepArray(const LoadedRuns& all, kj::StringPtr runs, kj::AsyncIoContext& io);
  KJ_DISALLOW_COPY(SweepArray);

  // Skips runs that have finished, submits the others, and resolves to the records of all runs, in
  // the order of the list. Runs that an earlier call submitted and that are not over are followed
  // and not submitted again. If a process outside of Slurm runs a run, the record says RUNNING.
  // Dropping the promise leaves the jobs alone. Call once.
  kj::Promise<kj::Array<RunRecord>> run();
  // Ends all jobs: see SlurmQueue::cancel(). Call it when the promise of run() is dropped.
  kj::Promise<void> cancel();
  // Removes the progress line.
  void clear() { progress.clear(); }

private:
  // Skips the run, or adds it to `toSubmit` or `followed`. `queued` are the jobs that earlier calls
  // have submitted, as far as Slurm knows them.
  void sort(size_t index, kj::ArrayPtr<const SlurmJob> queued);
  // The same for all runs from `index` on. `queued` must outlive the promise.
  kj::Promise<void> sortFrom(size_t index, kj::ArrayPtr<const SlurmJob> queued);
  kj::Promise<void> submit();
  // Looks every 2 s until no run is in progress.
  kj::Promise<void> follow();
  // Finishes the runs that are over. `answer` is what Slurm has said.
  void take(const kj::Maybe<SlurmQueue::Jobs>& answer);
  // Returns how a run ended. `job` is what Slurm said of its job at the end. It is null if Slurm
  // has forgotten the job.
  RunRecord recordOf(size_t index, const kj::Maybe<SlurmJob>& job) const;
  void show(kj::ArrayPtr<const SlurmJob> known);
  void finish(size_t index, RunRecord record);
  void say(kj::StringPtr line);

  const LoadedRuns& all;
  const SweepFolders folders;
  kj::AsyncIoContext& io;
  SlurmQueue queue;
  ProgressLine progress;
  kj::Array<RunRecord> records;  // by index; empty for runs that have not ended
  kj::Vector<size_t> toSubmit;
  // The runs that have a job and are not over.
  struct Followed {
    size_t index;
    kj::String id;
  };
  kj::Vector<Followed> followed;
  kj::Vector<kj::String> jobs;  // numbers of all jobs that this object follows
  kj::Vector<kj::String>
      earlier;      // of all jobs of earlier calls, until Slurm has told their states
  uint before = 0;  // how many runs earlier calls had finished
  uint failed = 0;
  bool hasAnswer = true;  // whether Slurm has answered
  // Continues when the promise of run() is dropped.
  kj::ForkedPromise<void> submission = kj::Promise<void>(kj::READY_NOW).fork();
  kj::TimePoint began;
};

}  // namespace runner

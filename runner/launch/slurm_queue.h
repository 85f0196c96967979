// runner/launch/slurm_queue.h: jobs in the queue of Slurm: submits them, asks for them, and cancels
// them, by Slurm's own commands.
#pragma once

#include <kj/array.h>
#include <kj/async-io.h>
#include <kj/string.h>
#include <kj/vector.h>

#include "runner/logs/run_folder.h"

namespace runner {

// What Slurm knows of a job, or of one task of a job array.
struct SlurmJob {
  kj::String id;      // "17", or "17_3" for a task of an array
  kj::String state;   // Slurm's word: "PENDING", "RUNNING", "TIMEOUT"
  kj::String reason;  // Slurm's word: "Resources", "TimeLimit". Empty if it gives none
  kj::String nodes;   // "n[1-3]". Empty for a job that waits

  bool isWaiting() const { return state == "PENDING"; }
  // Whether no process of it is left, and none will be started.
  bool isOver() const;
  // Whether Slurm or a person ended it before its script had ended.
  bool wasEnded() const;
  // Returns "PENDING (Resources)".
  kj::String text() const;
  SlurmJob clone() const;
};

// Reads a line that squeue writes for SlurmQueue: `17_3|RUNNING|None|n1`. What is missing is empty.
SlurmJob slurmJobIn(kj::StringPtr line);

// Returns what Slurm calls run `i` of the `count` runs that one script starts: see slurmScript().
kj::String slurmTaskId(kj::StringPtr job, size_t i, size_t count);

// Returns the file in the folder of a run that names its job: see noteSlurmJob().
kj::String slurmJobFile(const RunFolder& folder);
// Writes into the folder of a run which job, or task of an array, Slurm runs it as.
void noteSlurmJob(const RunFolder& folder, kj::StringPtr id);
// Returns what was written there last. Null if the run was never submitted.
kj::Maybe<kj::String> slurmJobOf(const RunFolder& folder);
// Whether this process runs in that job of Slurm, or in that task of an array.
bool isOwnSlurmJob(kj::StringPtr id);
// Removes what noteSlurmJob() has written, for a run that begins or goes on in this process. Does
// nothing if this process runs in that job.
void forgetSlurmJob(const RunFolder& folder);

// Returns why the run in `folder` ended if it did not end by itself. Null if it did. `job` is what
// Slurm says of its job at the end, or null if it no longer knows the job.
kj::Maybe<kj::String> whySlurmEnded(const RunFolder& folder, const kj::Maybe<SlurmJob>& job);

// Calls Slurm's commands. Nothing here calls them more than once per second.
class SlurmQueue {
public:
  // `io` must outlive this object. Its port must capture child exits.
  explicit SlurmQueue(kj::AsyncIoContext& io): io(io) {}

  // Submits the script in a file. Resolves to the number of the job. Rejects with what sbatch says.
  kj::Promise<kj::String> submit(kj::StringPtr path);

  // Writes into the folders of runs that they are the tasks of this new job: see slurmTaskId(). If
  // that fails, cancels the job, because nobody would find it, and rejects. The arguments need not
  // outlive the call.
  kj::Promise<void> noteOrCancel(kj::StringPtr job, kj::ArrayPtr<const RunFolder> folders);

  // Resolves to what Slurm knows of the jobs, and of each task of those that are arrays. Slurm
  // forgets jobs some minutes after their end: they are missing. Null if Slurm does not answer.
  using Jobs = kj::Array<SlurmJob>;
  kj::Promise<kj::Maybe<Jobs>> look(kj::ArrayPtr<const kj::String> ids);

  // Ends the jobs as Ctrl-C would end their runs, and those that wait at once. After 15 s, asks
  // Slurm to kill what is left. Resolves when no process of them is left. Rejects after 2 minutes,
  // or if Slurm refuses.
  kj::Promise<void> cancel(kj::Array<kj::String> ids);

private:
  struct Said {
    int exitCode = 0;
    kj::Vector<kj::String> output, errors;  // lines
  };
  kj::Promise<kj::Own<Said>> call(kj::Vector<kj::String> words);
  kj::Promise<void> signal(
      kj::ArrayPtr<const kj::String> ids, std::initializer_list<kj::StringPtr> options);
  kj::Promise<void> awaitEnd(kj::ArrayPtr<const kj::String> ids, kj::uint waited_s);

  kj::AsyncIoContext& io;
};

}  // namespace runner

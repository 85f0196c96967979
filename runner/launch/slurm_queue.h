// runner/launch/slurm_queue.h: jobs in the queue of Slurm: submits, queries and cancels them with
// Slurm's own commands.
#pragma once

#include <kj/array.h>
#include <kj/async-io.h>
#include <kj/string.h>
#include <kj/vector.h>

#include "runner/logs/run_folder.h"

namespace runner {

// Slurm's information about a job, or about one task of a job array.
struct SlurmJob {
  kj::String id;      // "17", or "17_3" for a task of an array
  kj::String state;   // Slurm's word: "PENDING", "RUNNING", "TIMEOUT"
  kj::String reason;  // Slurm's word: "Resources", "TimeLimit". Empty if it gives none
  kj::String nodes;   // "n[1-3]". Empty for a waiting job

  bool isWaiting() const { return state == "PENDING"; }
  // Whether all its processes have ended, and none will be started.
  bool isOver() const;
  // Whether Slurm or a person ended it before its script had ended.
  bool wasEnded() const;
  // Returns "PENDING (Resources)".
  kj::String text() const;
  SlurmJob clone() const;
};

// Reads a line that squeue writes for SlurmQueue: `17_3|RUNNING|None|n1`. Missing fields are empty.
SlurmJob slurmJobIn(kj::StringPtr line);

// Returns Slurm's id of run `i` of the `count` runs that one script starts: see slurmScript().
kj::String slurmTaskId(kj::StringPtr job, size_t i, size_t count);

// Returns the file in the folder of a run that names its job: see noteSlurmJob().
kj::String slurmJobFile(const RunFolder& folder);
// Writes the id of a run's job, or task of an array, into the folder of the run.
void noteSlurmJob(const RunFolder& folder, kj::StringPtr id);
// Returns the id that was last written there. Null if the run was never submitted.
kj::Maybe<kj::String> slurmJobOf(const RunFolder& folder);
// Whether this process runs in the Slurm job, or task of an array, with this id.
bool isOwnSlurmJob(kj::StringPtr id);
// Removes the file of noteSlurmJob(), for a run that begins or continues in this process. Does
// nothing if this process runs in that job.
void forgetSlurmJob(const RunFolder& folder);

// Returns why Slurm or a person ended the run in `folder`. Null if it ended by itself. `job` is
// Slurm's information about its job at the end, or null if Slurm no longer knows the job.
kj::Maybe<kj::String> whySlurmEnded(const RunFolder& folder, const kj::Maybe<SlurmJob>& job);

// Calls Slurm's commands. While it waits for the end of jobs, it asks at most once per second.
class SlurmQueue {
public:
  // `io` must outlive this object. Its port must capture child exits.
  explicit SlurmQueue(kj::AsyncIoContext& io): io(io) {}

  // Submits the script in a file. Resolves to the number of the job. Rejects with sbatch's message.
  kj::Promise<kj::String> submit(kj::StringPtr path);

  // Writes the ids of the tasks of this new job into the folders of the runs: see slurmTaskId(). If
  // that fails, cancels the job, because nobody could find it, and rejects. The arguments need not
  // outlive the call.
  kj::Promise<void> noteOrCancel(kj::StringPtr job, kj::ArrayPtr<const RunFolder> folders);

  // Resolves to Slurm's information about the jobs, and about each task of job arrays. Jobs that
  // Slurm has forgotten, some minutes after their end, are missing. Null if Slurm does not answer.
  using Jobs = kj::Array<SlurmJob>;
  kj::Promise<kj::Maybe<Jobs>> look(kj::ArrayPtr<const kj::String> ids);

  // Ends running jobs as Ctrl-C would end their runs, and removes waiting ones immediately. After
  // 15 s, asks Slurm to kill the remaining processes. Resolves when all processes have ended.
  // Rejects after 2 minutes, or if Slurm refuses.
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

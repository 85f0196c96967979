// runner/commands/slurm_run.h: `runner run` of a single run that waits in the queue of Slurm.
#pragma once

#include "runner/commands/course.h"
#include "runner/experiment/experiment.h"
#include "runner/logs/run_folder.h"
#include "runner/logs/run_lock.h"
#include "runner/system/command_line.h"

namespace runner {

// For a folder that may have a run. Throws, and says what to do, if a Slurm job works on the run or
// waits in the queue, unless this process runs in that job. Call it before there is an event loop,
// and before the lock of `folder` is taken, because taking the lock removes the record of how the
// run ended before.
void refuseQueued(const RunFolder& folder);
// Does the same with an event loop that exists already.
void refuseQueued(const RunFolder& folder, kj::AsyncIoContext& io);

// Whether others wait for the exit code of this process, because it is the run's own job of Slurm.
// Its number may not be noted yet. Call it before the lock of `folder` is taken.
bool isAwaited(const RunFolder& folder);

// What a process holds while it submits a run.
struct SubmissionLocks {
  kj::Maybe<RunLock> run;  // shows other commands that a process works on the run
  kj::AutoCloseFd job;     // see lockSubmission()

  // Releases the run's lock first, because the job takes it as soon as it gets the lock `job`.
  void release() {
    run = nullptr;
    job = nullptr;
  }
};

// Submits the run, which will work in `folder`, and then releases `locks`. Then follows the job to
// its end, and ends the process with its exit code. An interrupt cancels the job. With `detach`,
// ends the process right after the submission.
[[noreturn]] void runInQueue(const LoadedExperiment& loaded, const RunFolder& folder,
    SubmissionLocks locks, bool detach, Course& course, CommandLine& commandLine);

}  // namespace runner

// runner/commands/slurm_run.h: `runner run` of a single run that waits in the queue of Slurm.
#pragma once

#include "runner/commands/course.h"
#include "runner/experiment/experiment.h"
#include "runner/logs/run_folder.h"
#include "runner/logs/run_lock.h"
#include "runner/system/command_line.h"

namespace runner {

// For a run that is to be resumed. Throws, and says what to do, if a Slurm job works on the run or
// waits in the queue, unless this process runs in that job. Call it before there is an event loop,
// and before the lock of `folder` is taken, because taking the lock removes the record of how the
// run ended before.
void refuseQueued(const RunFolder& folder);
// Does the same with an event loop that exists already.
void refuseQueued(const RunFolder& folder, kj::AsyncIoContext& io);

// Submits the run, which will work in `folder`, and then drops `right`: see lockSubmission(). Then
// follows the job to its end, and ends the process with its exit code. An interrupt cancels the
// job. With `detach`, ends the process right after the submission.
[[noreturn]] void runInQueue(const LoadedExperiment& loaded, const RunFolder& folder,
    kj::AutoCloseFd right, bool detach, Course& course, CommandLine& commandLine);

}  // namespace runner

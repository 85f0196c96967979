// runner/commands/launched_runs.h: the runs that a launcher works on, for the commands that follow,
// end and list them.
#pragma once

#include <kj/array.h>
#include <kj/function.h>
#include <kj/string.h>

#include "runner/logs/run_folder.h"
#include "runner/system/command_line.h"

namespace runner {

// Returns the folder that the argument RUN of a command names. `path` is the folder of a run, or
// that of an experiment: then the result is its newest run, or `path` itself if its newest run is a
// sweep. A run that goes on is newer than one that has ended. If there is no run, prints this with
// the way out, and ends the program with WRONG_INPUT.
RunFolder launchedRun(kj::StringPtr path, CommandLine& commandLine);

// Whether `folder` is the folder of a sweep as a whole, and not of one of its runs.
bool isSweep(const RunFolder& folder);

// Whether a run was submitted to Slurm, and no process works on it or has finished it: it waits in
// the queue, Slurm has removed it, or it ended badly. Only Slurm knows which.
bool isQueued(const RunFolder& folder);
// Returns the folders below `runs` whose lock a process has, and those of queued runs. Sweeps come
// before their runs. Links are left out. Calls `leftOut` with the reason for each folder below
// `runs` that cannot be read. Throws if `runs` cannot be read.
kj::Array<RunFolder> foldersAtWork(
    kj::StringPtr runs, kj::FunctionParam<void(kj::StringPtr reason)> leftOut);

// How a run or a sweep ended.
struct LaunchEnd {
  int exitCode;     // of its launcher. If that was killed and recorded none, RUN_FAILED
  kj::String text;  // "finished", "failed: …", "interrupted: …"
};
// Call it when nobody has the lock of `folder`. Throws if the events of the run cannot be read.
LaunchEnd endOf(const RunFolder& folder);

}  // namespace runner

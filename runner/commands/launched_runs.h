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
// sweep. A running run counts as newer than one that has ended. If there is no run, says so and
// what to do, and ends the program with WRONG_INPUT.
RunFolder launchedRun(kj::StringPtr path, CommandLine& commandLine);

// Whether `folder` is the folder of a sweep as a whole, and not of one of its runs.
bool isSweep(const RunFolder& folder);

// Whether the run in `folder` was submitted to Slurm and has not finished, and no process works on
// it. It may wait in the queue, Slurm may have removed it, or it may have failed: only Slurm knows
// which.
bool isQueued(const RunFolder& folder);
// Returns the folder of the sweep to which the run in `folder` belongs: the folder above it, if the
// file of runOrderFile() there names the run. Otherwise null.
kj::Maybe<RunFolder> sweepOf(const RunFolder& folder);

// Returns the folders below `runs` that a process has locked, and those of queued runs. Sweeps come
// before their runs. Calls `leaveOut` with the reason for each folder below `runs` that cannot be
// read. Throws if `runs` cannot be read.
kj::Array<RunFolder> foldersAtWork(
    kj::StringPtr runs, kj::FunctionParam<void(kj::StringPtr reason)> leaveOut);

// How a run or a sweep ended.
struct LaunchEnd {
  int exitCode;     // of its launcher. RUN_FAILED if the launcher was killed and recorded none
  kj::String text;  // "finished", "failed: …", "interrupted: …"
};
// Returns how the run in `folder` ended. Nobody may hold the folder's lock. Throws if the events of
// the run cannot be read.
LaunchEnd endOf(const RunFolder& folder);

}  // namespace runner

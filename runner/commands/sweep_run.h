// runner/commands/sweep_run.h: `runner run` of a sweep.
#pragma once

#include "runner/commands/course.h"
#include "runner/launch/launcher.h"
#include "runner/sweep/loaded_runs.h"
#include "runner/system/command_line.h"

namespace runner {

// Runs the runs of a sweep in folders below `runs`, prints their table, and ends the process.
// `inQueue`: submits them to Slurm. An interrupt ends all runs.
[[noreturn]] void runSweep(const LoadedRuns& all, kj::StringPtr runs, bool inQueue,
    LaunchOptions options, Course& course, CommandLine& commandLine);

}  // namespace runner

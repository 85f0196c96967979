// runner/role_command.h: what `runner role` does once its words are read.
#pragma once

#include "runner/command_line.h"
#include "runner/experiment.h"
#include "runner/role_options.h"

namespace runner {

// Runs the role that `options` name to its end, and with a server those that share its process,
// each on a thread of its own. The first that fails ends the process: see CommandLine. Returns what
// is wrong with `options`, if it is: then nothing was started.
kj::Maybe<kj::String> runRoles(
    LoadedExperiment& loaded, const RoleOptions& options, CommandLine& commandLine);

}  // namespace runner

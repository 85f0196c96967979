// runner/commands/role_command.h: what `runner role` does once its words are read.
#pragma once

#include "runner/experiment/experiment.h"
#include "runner/roles/role_options.h"
#include "runner/system/command_line.h"

namespace runner {

// Runs the role that `options` name to its end, and with a server those that share its process,
// each on a thread of its own. The first that fails ends the process: see CommandLine. Returns what
// is wrong with `options`, if it is: then nothing was started.
kj::Maybe<kj::String> runRoles(
    LoadedExperiment& loaded, const RoleOptions& options, CommandLine& commandLine);

}  // namespace runner

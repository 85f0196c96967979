// runner/commands/role_process.h: the process of `runner role`: the role that it was started for,
// and those that share its process.
#pragma once

#include "runner/experiment/experiment.h"
#include "runner/roles/role_options.h"
#include "runner/system/command_line.h"

namespace runner {

// Runs the role that `options` name to its end. With a server, also runs those that share its
// process, each on its own thread. The first role that fails ends the process: see CommandLine. If
// `options` are wrong, returns why, and starts nothing.
kj::Maybe<kj::String> runRoles(
    LoadedExperiment& loaded, const RoleOptions& options, CommandLine& commandLine);

}  // namespace runner

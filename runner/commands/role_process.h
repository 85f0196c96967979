// runner/commands/role_process.h: the process of `runner role`: the role that it was started for,
// and those that share its process.
#pragma once

#include "runner/experiment/experiment.h"
#include "runner/roles/role_options.h"
#include "runner/system/command_line.h"

namespace runner {

// The roles of one process.
struct ProcessRoles {
  RoleOptions first;
  // Whether the coordinator gives `first` its index.
  bool takesIndex = false;
  // Whether the process also has the job's coordinator, which listens at first.listen. It ends with
  // the coordinator's exit code.
  bool carryCoordinator = false;
  // The secret that a coordinator has drawn, and leaves in its folder for the others. Unset if the
  // user gave it one, or if they do not meet there: see address_file.h.
  rpc::Secret drawn = {};
};

// Runs `roles` to their end, each on a thread of its own: the first one, the servers that share a
// process with it, and the coordinator if the process carries it. The first role that fails ends
// the process: see CommandLine. A coordinator without a folder makes a new one below `runs`. If the
// options are wrong, returns why, and starts nothing.
kj::Maybe<kj::String> runRoles(
    LoadedExperiment& loaded, ProcessRoles roles, CommandLine& commandLine);

}  // namespace runner

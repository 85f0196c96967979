// runner/commands/role_process.h: the process of `runner role`: the role that it was started for,
// and roles that share the process.
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
  // Whether the process also runs the job's coordinator, which listens at first.listen. The process
  // then ends with the coordinator's exit code.
  bool carryCoordinator = false;
  // The secret that a coordinator has drawn, and writes to its folder for the other roles. Unset if
  // the user gave a secret, or if the roles do not meet in the folder: see address_file.h.
  rpc::Secret drawn = {};
};

// Runs `roles` to their end, each on a thread of its own: the first one, the servers that share a
// process with it, and the coordinator if `carryCoordinator` is set. The first role that fails ends
// the process: see CommandLine. A coordinator without a folder makes a new one below `runs`. If the
// options are wrong, starts nothing and returns why. Otherwise returns null when all roles have
// ended.
kj::Maybe<kj::String> runRoles(
    LoadedExperiment& loaded, ProcessRoles roles, CommandLine& commandLine);

}  // namespace runner

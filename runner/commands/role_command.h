// runner/commands/role_command.h: `runner role`.
#pragma once

#include "runner/commands/file_command.h"
#include "runner/roles/role_options.h"

namespace runner {

// Runs one role of a job.
class RoleCommand: private FileCommand {
public:
  // The command line must outlive this object.
  explicit RoleCommand(CommandLine& commandLine): FileCommand(commandLine) {}

  kj::MainFunc getMain();

private:
  Validity setRole(kj::StringPtr word);
  Validity setIndex(kj::StringPtr word);
  Validity setListen(kj::StringPtr word);
  Validity setCoordinator(kj::StringPtr word);
  Validity runOneRole();

  kj::Maybe<Role> role;
  uint index = 0;
  kj::String coordinator;
  ListenPlace listen;
  bool isListenGiven = false;
  kj::String folder;
  kj::Maybe<rpc::TraceSteps> traceSteps;
  bool untilStdinCloses = false;
  bool launched = false;
};

}  // namespace runner

// runner/commands/role_command.h: `runner role`.
#pragma once

#include "runner/commands/file_command.h"
#include "runner/commands/role_process.h"
#include "runner/roles/environment_roles.h"
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
  Validity setWorkersBefore(kj::StringPtr word);
  Validity setListen(kj::StringPtr word);
  Validity setCoordinator(kj::StringPtr word);
  Validity run();
  // Returns what is wrong with the other options if `given` is the value of --role. Null if nothing
  // is.
  kj::Maybe<kj::String> wrongOf(Role given) const;
  // Sets the role, its index and the addresses from the environment, and prints them for the user.
  // Throws if the environment names no role.
  void askEnvironment(const ClusterConfig& cluster, ProcessRoles& roles);
  // Sets the options of a rank that reads the coordinator's address from the folder.
  void meetInFolder(const ClusterConfig& cluster, bool isOneHost, ProcessRoles& roles);

  kj::Maybe<Role> role;
  kj::Maybe<uint> index;
  kj::String coordinator;
  kj::Maybe<ListenPlace> listen;
  TaskFlags flags;
  kj::String folder;
  CopiedData data;  // empty: not given
  kj::Maybe<uint> workersBefore;
  kj::Maybe<rpc::TraceSteps> traceSteps;
  bool resumes = false;
  kj::String membershipOf;
  bool untilStdinCloses = false;
  bool launched = false;
};

}  // namespace runner

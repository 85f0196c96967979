// runner/launch/launchers.h: starts, watches and takes down one role.
#pragma once

#include <kj/async-io.h>
#include <kj/string.h>

#include "runner/experiment/experiment.h"
#include "runner/launch/run_view.h"
#include "runner/roles/role_options.h"

namespace runner {

// Exit code of a role that failed because another one did.
constexpr int LOST_A_PEER_EXIT = 75;

// Why a role failed, or must fail. A lower rank is nearer to the cause.
struct Failure {
  enum Rank { KILLED, STOPPED, FAILED, SILENT, LOST_A_PEER } rank;
  kj::String reason;
};

// A role that was started. The destructor takes it down.
class StartedRole {
public:
  virtual ~StartedRole() noexcept(false) = default;
  // Returns the stream of the coordinator's events. Call once, for the coordinator only.
  virtual kj::Own<kj::AsyncInputStream> events() = 0;
  // Resolves when the role has ended, with null if it ended well. Call once.
  virtual kj::Promise<kj::Maybe<Failure>> ended() = 0;
  // Whether a signal (SIGSTOP, SIGTSTP) has stopped the role, and it has not continued since.
  virtual bool isStopped() = 0;
};

// Starts a role of `loaded` by the launcher that it names. Lines that the role writes for people go
// to `view`. All arguments except `options` must outlive the role.
kj::Own<StartedRole> startRole(
    const LoadedExperiment& loaded, RoleOptions options, RunView& view, kj::AsyncIoContext& io);

}  // namespace runner

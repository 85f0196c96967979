// runner/launch/launchers.h: how one role is started, watched and taken down.
#pragma once

#include <kj/async-io.h>
#include <kj/string.h>

#include "runner/experiment/experiment.h"
#include "runner/launch/run_view.h"
#include "runner/roles/role_options.h"

namespace runner {

// Exit code of a role that failed because another one did.
constexpr int LOST_A_PEER_EXIT = 75;

// Why a role ended badly, or will. A lower rank is nearer to the cause.
struct Failure {
  enum Rank { KILLED, STOPPED, FAILED, SILENT, LOST_A_PEER } rank;
  kj::String reason;
};

// A role that was started. Taken down when it goes.
class StartedRole {
public:
  virtual ~StartedRole() noexcept(false) = default;
  // What the coordinator writes its events to. Once.
  virtual kj::Own<kj::AsyncInputStream> events() = 0;
  // Resolves when the role has ended: null if it ended well. Once.
  virtual kj::Promise<kj::Maybe<Failure>> ended() = 0;
  // Whether a signal has stopped it (SIGSTOP, SIGTSTP) and it has not continued.
  virtual bool isStopped() = 0;
};

// Starts a role of `loaded` by the launcher that it names. What the role writes for people goes to
// `view`. All but `options` must outlive the role.
kj::Own<StartedRole> startRole(
    const LoadedExperiment& loaded, RoleOptions options, RunView& view, kj::AsyncIoContext& io);

}  // namespace runner

// runner/launch/launch.h: what all launchers share: the course of a run from the first role to the
// last.
#pragma once

#include <kj/async-io.h>
#include <kj/timer.h>
#include <kj/vector.h>

#include "rpc/wire/running_time.h"
#include "runner/launch/launchers.h"
#include "runner/logs/job.capnp.h"

namespace runner {

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

// One run. A launcher is a way to start a role; everything else is here.
class Launch: private kj::TaskSet::ErrorHandler {
public:
  // Starts a role. `coordinator` is its address, empty for the coordinator itself.
  using Start =
      kj::Function<kj::Own<StartedRole>(Role role, uint index, kj::StringPtr coordinator)>;

  // All must outlive the launch.
  Launch(const Experiment& experiment, RunView& view, kj::Timer& timer, Start start);

  // Call once. Roles are taken down before the promise resolves, and when the launch goes, which
  // must be after its promise.
  kj::Promise<Outcome> run();

private:
  StartedRole& add(Role role, uint index, kj::StringPtr coordinator);
  // Names of the roles that have not ended.
  kj::Vector<kj::StringPtr> stayed();
  void take(kj::StringPtr line);
  void fail(Failure failure);
  void taskFailed(kj::Exception&& exception) override;
  // Fails the run when the coordinator is silent, when a role is stopped before the coordinator
  // would notice, or when roles stay although the job is over.
  kj::Promise<void> watchSilence();
  void checkCoordinator();
  void checkStopped();
  // Fails the run when roles have not joined cluster.start_timeout_s after they were started.
  void checkJoined();

  // A process with what is known of it.
  struct Member {
    Role kind;
    uint index;  // of its first role
    uint count;  // of its roles
    kj::String name;
    kj::Own<StartedRole> role;
    uint joined = 0;  // of its roles; of the coordinator: it has spoken
    bool hasEnded = false;
    kj::Maybe<kj::Duration> stoppedSince = nullptr;  // by `running`; only before it has joined

    bool hasJoined() const { return joined == count; }
  };

  const Experiment& experiment;
  RunView& view;
  kj::Timer& timer;
  Start start;

  kj::Own<kj::AsyncInputStream> events;
  rpc::RunningTime running;
  kj::Duration lastHeard = 0 * kj::NANOSECONDS;  // of the coordinator, by `running`
  kj::Maybe<kj::Duration> rolesStarted;          // when the last one was, by `running`
  kj::Maybe<Failure> failure;  // the one nearest to the cause, of what several roles say
  kj::Promise<void> over;
  kj::Own<kj::PromiseFulfiller<void>> overFulfiller;
  kj::Promise<void> causeKnown;  // `failure` is more than that somebody lost somebody
  kj::Own<kj::PromiseFulfiller<void>> causeFulfiller;
  kj::Vector<kj::Own<Member>> members;  // the coordinator first
  kj::Own<kj::TaskSet> tasks;
};

}  // namespace runner

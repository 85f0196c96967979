// runner/launch/launch.h: the course of a run from its first role to its last, whatever launcher
// starts them.
#pragma once

#include <kj/async-io.h>
#include <kj/timer.h>
#include <kj/vector.h>

#include "rpc/trace.h"
#include "rpc/wire/running_time.h"
#include "runner/experiment/experiment.h"
#include "runner/launch/launchers.h"
#include "runner/launch/run_view.h"
#include "runner/logs/job.capnp.h"
#include "runner/logs/run_ending.h"
#include "runner/logs/run_folder.h"

namespace runner {

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

// Starts every role of `loaded` by the launcher that it names, hands the coordinator's events to
// `view`, and resolves when all have ended or the run has failed. The outcome is what the run's
// last event says: what goes wrong after that is told to `view` as a warning. Processes are gone
// then, and when the promise is dropped; threads (inline) of a failed or dropped run are not, so
// the caller must end the process, but they no longer write to the run's logs. All arguments must
// outlive the promise; `io`'s port must capture child exits. Several runs may go side by side on
// one event loop. With `trace`, servers and workers leave what they recorded of these steps in the
// folder, when all went well: see joinTraces().
kj::Promise<Outcome> launch(const LoadedExperiment& loaded, const RunFolder& folder, RunView& view,
    kj::AsyncIoContext& io, kj::Maybe<rpc::TraceSteps> trace = nullptr);

}  // namespace runner

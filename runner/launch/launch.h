// runner/launch/launch.h: the course of a run from its first role to its last. It is the same for
// every launcher.
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

// One run. A launcher only knows how to start a role. Everything else is here.
class Launch: private kj::TaskSet::ErrorHandler {
public:
  // Starts a role. `coordinator` is the coordinator's address. It is empty for the coordinator
  // itself.
  using Start =
      kj::Function<kj::Own<StartedRole>(Role role, uint index, kj::StringPtr coordinator)>;

  // All arguments must outlive the launch.
  Launch(const Experiment& experiment, RunView& view, kj::Timer& timer, Start start);

  // Runs all roles. They are taken down before the promise resolves. The promise must not outlive
  // the launch. Call once.
  kj::Promise<Outcome> run();

private:
  StartedRole& add(Role role, uint index, kj::StringPtr coordinator);
  // Returns the names of the processes that have not ended.
  kj::Vector<kj::StringPtr> stayed();
  void take(kj::StringPtr line);
  void fail(Failure failure);
  void taskFailed(kj::Exception&& exception) override;
  // Fails the run if the coordinator is silent, if a role is stopped before it joined (so that the
  // coordinator cannot notice), or if roles keep running after the job is over.
  kj::Promise<void> watchSilence();
  void checkCoordinator();
  void checkStopped();
  // Fails the run if roles have not joined cluster.start_timeout_s after they were started.
  void checkJoined();

  // A process and what is known about it.
  struct WatchedProcess {
    Role kind;
    uint index;  // of its first role
    uint count;  // of its roles
    kj::String name;
    kj::Own<StartedRole> role;
    uint joined = 0;  // how many of its roles. 1 for a coordinator that has sent an event
    bool hasEnded = false;
    kj::Maybe<kj::Duration> stoppedSince = nullptr;  // by `running`. Null after it has joined

    bool hasJoined() const { return joined == count; }
  };

  const Experiment& experiment;
  RunView& view;
  kj::Timer& timer;
  Start start;

  kj::Own<kj::AsyncInputStream> events;
  rpc::RunningTime running;
  kj::Duration lastHeard = 0 * kj::NANOSECONDS;  // from the coordinator, by `running`
  kj::Maybe<kj::Duration> rolesStarted;          // when the last role was started, by `running`
  kj::Maybe<Failure> failure;  // of those that roles report, the one nearest to the cause
  kj::Promise<void> over;
  kj::Own<kj::PromiseFulfiller<void>> overFulfiller;
  kj::Promise<void> causeKnown;  // resolves when `failure` is more than a lost peer
  kj::Own<kj::PromiseFulfiller<void>> causeFulfiller;
  kj::Vector<kj::Own<WatchedProcess>> members;  // the coordinator first
  kj::Own<kj::TaskSet> tasks;
};

// Starts every role of `loaded` by the launcher that it names, and passes the coordinator's events
// to `view`. Resolves when all roles have ended or the run has failed. The outcome is what the
// run's last event says. Anything that goes wrong after that event goes to `view` as a warning.
//
// Processes are gone when the promise resolves or is dropped. Threads (launcher inline) of a failed
// or dropped run are not. They no longer write to the run's logs, but the caller must end the
// process. All arguments must outlive the promise. The port of `io` must capture child exits.
// Several runs may go side by side on one event loop.
//
// With `trace`, servers and workers record these steps, and leave the records in the folder if the
// run ends well: see joinTraces().
kj::Promise<Outcome> launch(const LoadedExperiment& loaded, const RunFolder& folder, RunView& view,
    kj::AsyncIoContext& io, kj::Maybe<rpc::TraceSteps> trace = nullptr);

}  // namespace runner

// runner/launch/launch.h: the course of a run from its first role to its last. It is the same for
// every launcher.
#pragma once

#include <kj/async-io.h>
#include <kj/timer.h>
#include <kj/vector.h>

#include "rpc/wire/running_time.h"
#include "runner/experiment/experiment.h"
#include "runner/launch/launcher.h"
#include "runner/launch/run_view.h"
#include "runner/logs/job.capnp.h"
#include "runner/logs/run_ending.h"
#include "runner/logs/run_folder.h"

namespace runner {

// One run. The launcher knows how to start roles. Everything else is here.
class Launch: private kj::TaskSet::ErrorHandler {
public:
  // All arguments must outlive the launch. With cluster.on_loss = "continue" and launcher `local`,
  // the job gets as many workers as the user wants: see wantedWorkers(). Without `folder`, it keeps
  // its number of workers.
  //
  // If the job repeats the losses and joins of another run, `repeatedSeats` is the number of ranks
  // that the other run had: see MemberPlan::seats(). Otherwise it is 0. The launch then starts a
  // worker for each of these ranks that is free. The coordinator lets the worker join at the step
  // at which a worker of this rank joined the other run.
  Launch(const Experiment& experiment, RunView& view, kj::Timer& timer, Launcher& launcher,
      kj::Maybe<const RunFolder&> folder = nullptr, uint repeatedSeats = 0);

  ~Launch() noexcept(false);

  // Asks the coordinator to save the run. Resolves when the checkpoint is on disk, when it is known
  // that there will be none, when the launch is destroyed, or after 4 s.
  kj::Promise<void> save();
  // Whether the run has failed because a role was lost. Another attempt may then succeed.
  bool wasLost() const;
  // Whether the hosts were ready, and the coordinator was started.
  bool hasBegun() const { return events.get() != nullptr; }

  // Runs all roles. They are taken down before the promise resolves. The promise must not outlive
  // the launch. Call once.
  kj::Promise<Outcome> run();

private:
  // A group, or the coordinator, and what is known about it.
  struct WatchedGroup {
    RoleGroup group;
    kj::Own<StartedGroup> process;
    kj::Array<bool> joined;  // per role. True for a coordinator that has sent an event
    bool hasEnded = false;
    kj::Maybe<Failure> failure{};  // of a worker that ended, while the others may continue
    bool isLost = false;           // the others continue without it
    bool leaves = false;           // it was asked to leave
    bool isExtra = false;          // the others train while it starts
    uint tries = 0;                // how often it was started again since it was last a member
    kj::Duration started = 0 * kj::NANOSECONDS;      // by `running`
    kj::Maybe<kj::Duration> stoppedSince = nullptr;  // by `running`. Null after it has joined

    kj::Promise<void> watching = nullptr;  // waits for its end

    bool hasJoined() const;
  };

  void begin(ListenPlace place);
  // Whether the job may continue after this failure of the group. If so, the coordinator decides
  // whether it does.
  bool mayGoOnWithout(const WatchedGroup& member, const Failure& failed) const;
  void watch(WatchedGroup& member);
  void end(WatchedGroup& member);
  void takeFinished();
  // Ends the process of a worker that is not needed any more.
  void takeDown(WatchedGroup& member);
  // The others continue without worker `rank`. Starts another process in its place, unless the
  // worker was asked to leave. `left`: it has left on purpose.
  void replace(uint rank, bool left);
  void replaceNow(WatchedGroup& member);
  // Starts another process for the same role.
  void startAgain(WatchedGroup& member);
  // For a worker that has failed before it joined, and for which the others do not wait: says
  // `reason`, starts the worker again soon, and returns true. Returns false for all other members,
  // and after some tries.
  bool isTriedAgain(WatchedGroup& member, kj::StringPtr reason);
  // Whether the number of workers may change while the job trains.
  bool scales() const;
  // Starts workers or asks some to leave, so that there are as many as the user wants.
  void adjustWorkers();
  void startWorker(uint rank);
  kj::Maybe<WatchedGroup&> workerOf(uint rank);
  void add(RoleGroup group, kj::Own<StartedGroup> process);
  // Returns the names of the groups that have not ended.
  kj::Vector<kj::StringPtr> stayed();
  // Takes an event of the coordinator.
  void take(kj::StringPtr line);
  void noteJoined(Role role, uint index);
  // Starts the servers and workers of a coordinator that listens.
  void startRoles(Event::Listening::Reader listening);
  // Resolves what save() has returned.
  void endSaving();
  // Ends the processes of all roles.
  void endRoles();
  void fail(Failure failure);
  void taskFailed(kj::Exception&& exception) override;
  // Fails the run if the coordinator is silent, if a role is stopped before it joined (so that the
  // coordinator cannot notice), or if roles keep running after the job is over.
  kj::Promise<void> watchSilence();
  void checkCoordinator();
  void checkStopped();
  // Fails the run if roles have not joined cluster.start_timeout_s after they were started.
  void checkJoined();

  const Experiment& experiment;
  RunView& view;
  kj::Timer& timer;
  Launcher& launcher;
  const kj::Maybe<const RunFolder&> folder;
  const uint repeatedSeats;
  uint wanted;  // how many workers the job is to have

  kj::Own<kj::AsyncInputStream> events;
  rpc::RunningTime running;
  kj::Duration lastHeard = 0 * kj::NANOSECONDS;  // from the coordinator, by `running`
  kj::String refused;                            // who was refused: the coordinator's last report
  kj::String address;                            // of the coordinator, once it listens
  bool allHaveJoined = false;                    // at some time
  bool finished = false;                         // the run has gone well
  kj::Maybe<kj::Duration> rolesStarted;          // when the last group was started, by `running`
  kj::Maybe<Failure> failure;  // of those that roles report, the one nearest to the cause
  kj::Promise<void> over;
  kj::Own<kj::PromiseFulfiller<void>> overFulfiller;
  kj::Promise<void> causeKnown;  // resolves when `failure` names a cause other than a lost peer
  kj::Own<kj::PromiseFulfiller<void>> causeFulfiller;
  kj::Vector<kj::Own<WatchedGroup>> members;  // the coordinator first
  kj::Vector<kj::Own<kj::PromiseFulfiller<void>>> saving;
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
// With `options.trace`, servers and workers leave their records in the folder if the run ends well:
// see joinTraces(). With `options.resumes`, the run in `folder` continues from its newest
// checkpoint, or begins again if no checkpoint is whole.
kj::Promise<Outcome> launch(const LoadedExperiment& loaded, const RunFolder& folder, RunView& view,
    kj::AsyncIoContext& io, LaunchOptions options = {});

}  // namespace runner

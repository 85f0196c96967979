// The attempts of a run: its roles are started again if one is lost.
#include <capnp/message.h>

#include "runner/launch/launch.h"
#include "runner/launch/launchers.h"
#include "runner/logs/events.h"
#include "runner/logs/job.capnp.h"
#include "runner/roles/member_plan.h"
#include "runner/system/reason.h"

namespace runner {

namespace {

// After so many failed attempts in a row without progress, the run ends.
constexpr uint LOSSES_MAX = 5;
// The pause after the first of these attempts. Each later pause is twice as long. Without pauses,
// all attempts to reach a network that is down would fail within a second.
constexpr auto FIRST_PAUSE = 1 * kj::SECONDS;

// Whether the run has its last event.
bool hasEnded(const RunFolder& folder) {
  capnp::MallocMessageBuilder message;
  auto event = message.initRoot<Event>();
  auto read = [&]() { parseEvent(lastLineOf(folder.events()), event); };
  return kj::runCatchingExceptions(read) == nullptr && isLast(event);
}

// A run, from its first attempt to its last.
struct Attempts {
  const LoadedExperiment& loaded;
  const RunFolder& folder;
  RunView& view;
  kj::AsyncIoContext& io;
  LaunchOptions options;
  uint64_t furthest = 0;  // the furthest step of all attempts that were lost
  uint inVain = 0;        // failed attempts in a row without progress
  // In the latest attempt:
  bool wasLost = false;
  bool hasBegun = false;  // all hosts were ready

  kj::Promise<Outcome> run();

private:
  kj::Promise<Outcome> attempt();
  void forgetLaunch() {
    if (options.saveHook != nullptr) options.saveHook->launch = nullptr;
  }
  bool goesOn();
};

kj::Promise<Outcome> Attempts::attempt() {
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  wasLost = hasBegun = false;
  auto run = kj::heap<LaunchedRun>(
      LaunchedRun{loaded, folder, view, io, options, secretFor(experiment.cluster)});
  auto launcher = options.newLauncher == nullptr ? newLauncher(*run) : (*options.newLauncher)(*run);
  uint repeatedSeats = 0;
  if (options.membershipOf.size() > 0) {
    auto& cluster = experiment.cluster;
    MemberPlan plan({kj::str(options.membershipOf)}, cluster.seats());
    repeatedSeats = plan.seats(cluster.workers);
  }
  auto launch =
      kj::heap<Launch>(experiment, view, io.provider->getTimer(), *launcher, folder, repeatedSeats);
  if (options.saveHook != nullptr) options.saveHook->launch = *launch;
  // The promise may also be dropped, for example because the sweep stops this run.
  return kj::evalNow([&]() { return launch->run(); })
      .catch_([](kj::Exception&& e) { return Outcome{.failure = reasonOf(e)}; })
      .then([this, &launch = *launch](Outcome&& outcome) {
        // Lost hosts may come back.
        hasBegun = launch.hasBegun();
        wasLost = launch.wasLost() || (options.wasLost && !hasBegun);
        return kj::mv(outcome);
      })
      .attach(kj::defer([this]() { forgetLaunch(); }))
      .attach(kj::mv(launch))
      .attach(kj::mv(launcher))
      .attach(kj::mv(run));
}

// Whether the run is started again after a role was lost.
bool Attempts::goesOn() {
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  if (!wasLost || !experiment.cluster.onLoss->restarts || hasEnded(folder)) return false;
  inVain = view.reportedStep() > furthest ? 0 : inVain + 1;
  furthest = kj::max(furthest, view.reportedStep());
  return inVain < LOSSES_MAX;
}

kj::Promise<Outcome> Attempts::run() {
  // There may be no launcher, for example because the user's secret cannot be read.
  auto attempted = kj::evalNow([this]() { return attempt(); }).catch_([](kj::Exception&& e) {
    return Outcome{.failure = reasonOf(e)};
  });
  return attempted.then([this](Outcome&& outcome) -> kj::Promise<Outcome> {
    KJ_IF_MAYBE(reason, outcome.failure) {
      if (goesOn()) {
        auto next = hasBegun ? ". All roles are started again, from the newest checkpoint"
                             : ". The hosts are tried again";
        view.say(kj::str(*reason, next));
        options.resumes = options.wasLost = true;
        if (inVain == 0) return run();
        auto pause = FIRST_PAUSE * (1 << (inVain - 1));
        return io.provider->getTimer().afterDelay(pause).then([this]() { return run(); });
      }
      if (inVain > 0) {
        auto result =
            furthest == 0 ? kj::str("made no step") : kj::str("did not get past step ", furthest);
        reason =
            &outcome.failure.emplace(kj::str(*reason, "; ", inVain, " attempts in a row ", result));
      }
    }
    return kj::mv(outcome);
  });
}

}  // namespace

kj::Promise<void> SaveHook::save() {
  KJ_IF_MAYBE(now, launch) return now->save();
  return kj::READY_NOW;
}

kj::Promise<Outcome> launch(const LoadedExperiment& loaded, const RunFolder& folder, RunView& view,
    kj::AsyncIoContext& io, LaunchOptions options) {
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  auto attempts = kj::heap<Attempts>(Attempts{loaded, folder, view, io, options});
  auto over = kj::evalNow([&]() {
    if (options.resumes) removeEnding(folder);
    return attempts->run();
  });
  return over
      .then([&experiment, &folder, &view](Outcome&& outcome) {
        KJ_IF_MAYBE(reason, outcome.failure) {
          auto& style = *experiment.log.style;
          kj::Maybe<Outcome> recorded;
          auto record = [&]() {
            recorded.emplace(recordEnding(folder, style, Ending::FAILED, *reason));
          };
          KJ_IF_MAYBE(e, kj::runCatchingExceptions(record)) {
            view.say(kj::str(
                "warning: the failure could not be recorded in ", folder.path, ": ", reasonOf(*e)));
          }
          KJ_IF_MAYBE(known, recorded) {
            if (known->failure == nullptr) {
              view.say(kj::str("warning: after the run had finished: ", *reason));
            }
            return kj::mv(*known);
          }
        }
        return kj::mv(outcome);
      })
      .attach(kj::mv(attempts));
}

}  // namespace runner

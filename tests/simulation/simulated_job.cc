#include "tests/simulation/simulated_job.h"

#include <kj/debug.h>
#include <unistd.h>

#include "runner/experiment/model_facts.h"
#include "runner/launch/launch.h"
#include "runner/logs/run_ending.h"
#include "runner/system/reason.h"
#include "tests/simulation/world.h"

namespace simulation {

namespace {

// A job that is not over after this time hangs. It is longer than all time-outs together.
constexpr auto PATIENCE = 3600 * kj::SECONDS;
// The longest time that a role keeps running if its launcher could not end it.
constexpr auto LEFT_PATIENCE = 120 * kj::SECONDS;

constexpr size_t LAST_EVENTS_BYTES = 3000;

// Records the messages to the launcher.
class QuietView final: public runner::RunView {
public:
  QuietView(World& world, uint epochs, uint64_t steps): RunView(epochs, steps), world(world) {}

  void show(runner::Event::Reader event) override {
    note(event);
    bool begins = event.isStarted() || event.isContinued();
    if (event.isSaved()) {
      world.savedStep = event.getSaved().getStep();
    } else if (begins) {
      uint64_t step = event.isContinued() ? event.getContinued().getStep() : 0;
      if (step < world.savedStep) {
        world.wrong = kj::str(
            "the run was saved at step ", world.savedStep, ", but begins again at step ", step);
      }
    }
  }
  void say(kj::StringPtr line) override {
    if (line.endsWith("from the newest checkpoint")) world.restarts++;
    auto text = kj::str(line, "\n");
    // To the other errors.
    (void)!::write(STDERR_FILENO, text.begin(), text.size());
  }
  void showWait(kj::StringPtr) override {}
  void end() override {}

private:
  World& world;
};

// Runs the job until it ends, and returns how.
runner::Outcome run(World& world, const runner::LoadedExperiment& loaded,
    const runner::RunFolder& folder, kj::StringPtr membershipOf, Faults& faults, Ended& ended) {
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  runner::ModelFacts facts(experiment);
  world.trainingRecords = facts.trainingRecords;
  const kj::ConstFunction<kj::Own<runner::Launcher>(const runner::LaunchedRun&)> newLauncher =
      [&world](const runner::LaunchedRun& run) -> kj::Own<runner::Launcher> {
    return newSimulatedLauncher(world, run);
  };
  runner::LaunchOptions options;
  options.newLauncher = &newLauncher;
  options.membershipOf = membershipOf;
  // Roles end when none of them has anything to do at this moment: calls that they have received
  // cannot be cancelled.
  auto settle = []() { return kj::evalLast([]() {}); };
  for (;;) {
    Provider provider(world.newEndpoint());
    auto io = World::ioOf(provider, world.scope);
    QuietView view(world, facts.epochs(experiment), facts.steps(experiment));
    world.clock.endAt(world.clock.now() + PATIENCE);
    kj::Maybe<runner::Outcome> outcome;
    bool isInterrupted = false;
    runner::SaveHook hook;
    options.saveHook = &hook;
    // As `runner run` does.
    auto interrupted = faults.interrupted().then([&](kj::Duration again) {
      isInterrupted = true;
      return hook.save().exclusiveJoin(world.clock.timer().afterDelay(again)).then(settle);
    });
    auto unlessGone = [&](kj::Exception&& e) -> kj::Promise<void> {
      if (faults.hasLostAll()) return kj::NEVER_DONE;
      return kj::mv(e);
    };
    kj::evalLater([&]() {
      runner::makeFolders(folder.path);
      runner::writeWhole(folder.experiment(), loaded.resolved);
      return runner::launch(loaded, folder, view, io, options);
    })
        .then([&](runner::Outcome&& result) -> kj::Promise<void> {
          if (faults.hasLostAll()) return kj::NEVER_DONE;
          outcome = kj::mv(result);
          return kj::READY_NOW;
        })
        .catch_(unlessGone)
        .exclusiveJoin(faults.launcherGone().then(settle))
        .exclusiveJoin(interrupted.catch_(unlessGone).eagerlyEvaluate(nullptr))
        .wait(world.scope);
    if (outcome == nullptr && isInterrupted && !faults.hasLostAll()) {
      ended.interruptions++;
      auto record = [&]() {
        auto recorded = runner::recordEnding(
            folder, *experiment.log.style, runner::Ending::INTERRUPTED, "received SIGTERM");
        // The last event may say that the run had ended before.
        if (recorded.interruption == nullptr) outcome = kj::mv(recorded);
      };
      // The disk may fail.
      kj::runCatchingExceptions(record);
    }
    world.disk.go();
    KJ_IF_MAYBE(result, outcome) return kj::mv(*result);
    if (faults.hasLostPower()) world.disk.losePower(world.dice);
    faults.recover();
    ended.resumptions++;
    options.resumes = true;
  }
}

}  // namespace

Ended simulate(const runner::LoadedExperiment& loaded, kj::StringPtr root, const Plan& plan,
    const Expected& expected, Mistakes mistakes, kj::StringPtr membershipOf) {
  Ended ended;
  World world(root, plan.seed, plan.slowest);
  if (mistakes.skipsSyncs) world.disk.ignoreSyncs();
  auto begin = world.clock.now();
  runner::RunFolder folder{kj::str(root, "/run")};
  auto simulated = [&]() {
    Faults faults(world, plan, expected.extent);
    auto outcome = run(world, loaded, folder, membershipOf, faults, ended);
    faults.end();
    KJ_IF_MAYBE(failure, outcome.failure) {
      ended.failure = kj::mv(*failure);
      return;
    }
    ended.failure = kj::mv(world.wrong);
    // Roles that the launcher could not end notice that their job is over.
    auto until = world.clock.now() + LEFT_PATIENCE;
    while (!world.running.empty() && world.clock.now() < until) {
      world.clock.timer().afterDelay(1 * kj::SECONDS).wait(world.scope);
    }
    if (!world.running.empty()) ended.failure = kj::str(world.running[0]->name, " is left behind");
    world.left.clear();
    ended.result.weightsSha256 = kj::mv(KJ_ASSERT_NONNULL(outcome.weightsSha256));
    ended.result.events = tests::ComparableEvents(folder);
    auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
    ended.isAsExpected = ended.result.events == expected.events;
    if (!ended.isAsExpected) {
      ended.result.account =
          accountOf(folder, experiment.cluster.workers, KJ_ASSERT_NONNULL(experiment.train.epochs));
    }
    if (ended.failure == nullptr) {
      auto& account = ended.isAsExpected ? expected.account : ended.result.account;
      KJ_IF_MAYBE(wrong, world.records.wrongIn(account, experiment, world.trainingRecords)) {
        ended.failure = kj::mv(*wrong);
      }
    }
  };
  KJ_IF_MAYBE(e, kj::runCatchingExceptions(simulated)) {
    kj::Vector<kj::StringPtr> left;
    for (auto process: world.running) left.add(process->name);
    ended.failure = kj::str(runner::reasonOf(*e), "\nroles that run: ", kj::strArray(left, ", "));
  }
  ended.result.extent = {(world.clock.now() - begin) / kj::NANOSECONDS * 1e-9, world.disk.changes(),
      world.network.sends()};
  ended.restarts = world.restarts;
  ended.leftBehind = world.leftBehind;
  if (ended.failure != nullptr) {
    // Returns the last events of the run.
    auto read = [&]() {
      auto events = accountOf(folder, 0, 0).events;
      auto size = kj::min(events.size(), LAST_EVENTS_BYTES);
      ended.lastEvents = kj::str(events.slice(events.size() - size));
    };
    kj::runCatchingExceptions(read);
  }
  ended.errors = world.disk.takeErrors();
  return ended;
}

}  // namespace simulation

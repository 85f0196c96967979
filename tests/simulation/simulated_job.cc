#include "tests/simulation/simulated_job.h"

#include <kj/debug.h>
#include <unistd.h>

#include <algorithm>

#include "runner/experiment/model_facts.h"
#include "runner/launch/launch.h"
#include "runner/logs/role_names.h"
#include "runner/logs/run_log.h"
#include "runner/system/reason.h"
#include "tests/comparable_events.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/world.h"

namespace simulation {

namespace {

// A job that is not over after this time hangs. It is longer than all time-outs together.
constexpr auto PATIENCE = 3600 * kj::SECONDS;
// The longest time for which a role goes on that its launcher could not take down.
constexpr auto LEFT_PATIENCE = 120 * kj::SECONDS;

// Notes what the launcher is told.
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

// Returns what a run has counted.
kj::String countsOf(const runner::RunFolder& folder) {
  kj::Vector<kj::String> lines;
  runner::eachEvent(folder, [&](runner::Event::Reader event) {
    auto role = [&]() { return runner::roleName(event.getRole(), event.getIndex()); };
    if (event.isTrained()) {
      auto trained = event.getTrained();
      lines.add(kj::str(role(), ": epoch ", trained.getEpoch(), ", steps ", trained.getSteps(),
          ", images ", trained.getImages()));
    } else if (event.isValidated()) {
      auto validated = event.getValidated();
      lines.add(
          kj::str("validated: epoch ", validated.getEpoch(), ", images ", validated.getImages()));
    } else if (event.isCounted()) {
      auto pushes = event.getCounted().getPushes();
      double applied = 0;
      for (auto count: pushes.getStaleness()) applied += count;
      lines.add(kj::str(role(), ": pushed ", pushes.getPushed(), ", dropped ", pushes.getDropped(),
          ", applied ", applied));
    }
  });
  std::sort(lines.begin(), lines.end(), [](kj::StringPtr a, kj::StringPtr b) { return a < b; });
  return kj::str(kj::strArray(lines, "\n"), "\n");
}

// Runs the job until it ends, and returns how.
runner::Outcome run(World& world, const runner::LoadedExperiment& loaded,
    const runner::RunFolder& folder, Faults& faults, Ended& ended) {
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  runner::ModelFacts facts(experiment);
  const kj::ConstFunction<kj::Own<runner::Launcher>(const runner::LaunchedRun&)> newLauncher =
      [&world](const runner::LaunchedRun& run) -> kj::Own<runner::Launcher> {
    return newSimulatedLauncher(world, run);
  };
  runner::LaunchOptions options;
  options.newLauncher = &newLauncher;
  for (;;) {
    Provider provider(world.newEndpoint());
    auto io = World::ioOf(provider, world.scope);
    QuietView view(world, facts.epochs(experiment), facts.steps(experiment));
    world.clock.endAt(world.clock.now() + PATIENCE);
    kj::Maybe<runner::Outcome> outcome;
    kj::evalLater([&]() {
      runner::makeFolders(folder.path);
      runner::writeWhole(folder.experiment(), loaded.resolved);
      return runner::launch(loaded, folder, view, io, options);
    })
        .then([&](runner::Outcome&& result) { outcome = kj::mv(result); })
        .catch_([&](kj::Exception&& e) -> kj::Promise<void> {
          if (faults.hasLostAll()) return kj::NEVER_DONE;
          return kj::mv(e);
        })
        .exclusiveJoin(faults.launcherGone())
        .wait(world.scope);
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
    const Expected& expected, Mistakes mistakes) {
  Ended ended;
  World world(root, plan.seed, plan.slowest);
  if (mistakes.skipsSyncs) world.disk.ignoreSyncs();
  auto begin = world.clock.now();
  runner::RunFolder folder{kj::str(root, "/run")};
  auto simulated = [&]() {
    Faults faults(world, plan, expected.seconds, expected.changes);
    auto outcome = run(world, loaded, folder, faults, ended);
    faults.end();
    KJ_IF_MAYBE(failure, outcome.failure) {
      ended.failure = kj::mv(*failure);
      return;
    }
    ended.failure = kj::mv(world.wrong);
    // Roles that the launcher could not take down notice that their job is gone.
    auto until = world.clock.now() + LEFT_PATIENCE;
    while (!world.running.empty() && world.clock.now() < until) {
      world.clock.timer().afterDelay(1 * kj::SECONDS).wait(world.scope);
    }
    if (!world.running.empty()) ended.failure = kj::str(world.running[0]->name, " is left behind");
    world.left.clear();
    ended.result.weightsSha256 = kj::mv(KJ_ASSERT_NONNULL(outcome.weightsSha256));
    ended.result.events = tests::comparableEvents(folder);
    ended.result.counts = countsOf(folder);
  };
  KJ_IF_MAYBE(e, kj::runCatchingExceptions(simulated)) ended.failure = runner::reasonOf(*e);
  ended.result.seconds = (world.clock.now() - begin) / kj::NANOSECONDS * 1e-9;
  ended.result.changes = world.disk.changes();
  ended.restarts = world.restarts;
  ended.leftBehind = world.leftBehind;
  ended.errors = world.disk.takeErrors();
  return ended;
}

}  // namespace simulation

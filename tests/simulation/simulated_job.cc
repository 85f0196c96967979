#include "tests/simulation/simulated_job.h"

#include <errno.h>
#include <kj/async-unix.h>
#include <kj/debug.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <deque>

#include "runner/experiment/model_facts.h"
#include "runner/launch/launch.h"
#include "runner/logs/role_names.h"
#include "runner/logs/run_log.h"
#include "runner/roles/roles.h"
#include "runner/system/reason.h"
#include "tests/comparable_events.h"
#include "tests/simulation/virtual_clock.h"
#include "tests/simulation/virtual_disk.h"
#include "tests/simulation/virtual_network.h"

namespace simulation {

using runner::Role;

namespace {

// A job that is not over after this time hangs. It is longer than all time-outs together.
constexpr auto PATIENCE = 3600 * kj::SECONDS;
// The longest time for which a role computes, and that the disk takes for a checkpoint.
constexpr auto COMPUTES = 20 * kj::MILLISECONDS;
constexpr auto WRITES = 400 * kj::MILLISECONDS;
constexpr size_t STACK_BYTES = 1 << 20;

// Roles look at signals there. None come.
kj::UnixEventPort& noSignals() {
  kj::UnixEventPort::captureSignal(runner::SAVE_SIGNAL);
  static thread_local kj::UnixEventPort port;
  return port;
}

// Stacks are kept from role to role.
kj::FiberPool& stacks() {
  static thread_local kj::FiberPool pool(STACK_BYTES);
  return pool;
}

class RoleProcess;

// The longest time for which a role goes on that its launcher could not take down.
constexpr auto LEFT_PATIENCE = 120 * kj::SECONDS;

// One simulated job.
struct World {
  World(kj::StringPtr root, const Plan& plan)
      : dice(plan.seed), network(clock, dice, plan.slowest), disk(root) {}

  VirtualClock clock;
  kj::EventLoop loop{clock};
  kj::WaitScope scope{loop};
  Dice dice;
  VirtualNetwork network;
  VirtualDisk disk;
  kj::Vector<kj::Own<Endpoint>> endpoints;  // of all processes, also of dead ones
  kj::Vector<RoleProcess*> running;
  // Roles that the launcher could not reach when it took them down. They go on.
  kj::Vector<kj::Own<RoleProcess>> left;
  uint leftBehind = 0;
  uint restarts = 0;
  uint64_t savedStep = 0;       // of the newest checkpoint that was said to be on disk
  kj::Maybe<kj::String> wrong;  // what must not happen

  Endpoint& newEndpoint() { return *endpoints.add(kj::heap<Endpoint>(network)); }
};

// What KJ's streams and timers come from.
class Provider final: public kj::AsyncIoProvider {
public:
  explicit Provider(Endpoint& endpoint): endpoint(endpoint) {}

  kj::OneWayPipe newOneWayPipe() override { return kj::newOneWayPipe(); }
  kj::TwoWayPipe newTwoWayPipe() override { return kj::newTwoWayPipe(); }
  kj::Network& getNetwork() override { return endpoint.sockets(); }
  kj::Timer& getTimer() override { return endpoint.timer(); }
  PipeThread newPipeThread(
      kj::Function<void(kj::AsyncIoProvider&, kj::AsyncIoStream&, kj::WaitScope&)>) override {
    KJ_UNIMPLEMENTED("the simulation has one thread");
  }

private:
  Endpoint& endpoint;
};

// The pipe between the coordinator and its launcher.
class Lines final: public kj::AsyncInputStream, public kj::Refcounted {
public:
  void write(kj::StringPtr line) {
    for (char c: line) bytes.push_back(c);
    bytes.push_back('\n');
    change();
  }
  void end() {
    ended = true;
    change();
  }

  kj::Promise<size_t> tryRead(void* buffer, size_t least, size_t most) override {
    auto target = static_cast<char*>(buffer);
    size_t count = kj::min(most, bytes.size());
    for (size_t i = 0; i < count; i++) {
      target[i] = bytes.front();
      bytes.pop_front();
    }
    if (count >= least || ended) return count;
    KJ_REQUIRE(count == 0, "a reader of lines wants more at once");
    auto paf = kj::newPromiseAndFulfiller<void>();
    waiting = kj::mv(paf.fulfiller);
    return paf.promise.then([this, buffer, least, most]() { return tryRead(buffer, least, most); });
  }

private:
  void change() {
    KJ_IF_MAYBE(fulfiller, waiting) (*fulfiller)->fulfill();
    waiting = nullptr;
  }

  std::deque<char> bytes;
  bool ended = false;
  kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> waiting;
};

// A role in a fiber.
class RoleProcess final: public runner::OneThread, private kj::TaskSet::ErrorHandler {
public:
  RoleProcess(World& world, const runner::LoadedExperiment& loaded, runner::RoleOptions ownOptions)
      : role(ownOptions.role),
        name(runner::roleName(role, ownOptions.index)),
        endpoint(world.newEndpoint()),
        world(world),
        provider(endpoint),
        options(kj::mv(ownOptions)),
        ending(kj::newPromiseAndFulfiller<kj::Maybe<runner::Failure>>()),
        later(kj::heap<kj::TaskSet>(static_cast<kj::TaskSet::ErrorHandler&>(*this))) {
    options.oneThread = *this;
    world.running.add(this);
    fiber = stacks()
                .startFiber([this, &loaded](kj::WaitScope& scope) {
                  ownScope = scope;
                  auto tell = [this](runner::Event::Reader, kj::StringPtr json) {
                    if (!endpoint.isDead()) lines->write(json);
                  };
                  runner::runRole(loaded, options, tell);
                })
                .then([this]() { end(nullptr); }, [this](kj::Exception&& e) { end(failureOf(e)); })
                .eagerlyEvaluate(nullptr);
  }
  ~RoleProcess() noexcept(false) { kill(); }

  // SIGKILL.
  void kill() {
    if (hasEnded) return;
    bool writes = role == Role::COORDINATOR;
    endpoint.die();
    if (writes) world.disk.stop();
    fiber = nullptr;
    if (writes) world.disk.go();
    end(runner::Failure{runner::Failure::KILLED, kj::str(name, ": killed by signal 9")});
  }

  // Resolves when it has ended, with null if it ended well. Call once.
  kj::Promise<kj::Maybe<runner::Failure>> ended() { return kj::mv(ending.promise); }
  // Whether its launcher cannot take it down now, because it is on another host.
  bool isOutOfReach() const { return role != Role::COORDINATOR && !hasEnded && endpoint.isAway(); }
  kj::Own<kj::AsyncInputStream> events() { return kj::addRef(*lines); }

  // Of the role itself.
  kj::AsyncIoContext newIo() const override {
    auto& self = const_cast<RoleProcess&>(*this);
    return {{}, kj::Own<kj::AsyncIoProvider>(&self.provider, kj::NullDisposer::instance),
        KJ_ASSERT_NONNULL(self.ownScope), noSignals()};
  }
  void yield() const override {
    auto& self = const_cast<RoleProcess&>(*this);
    self.endpoint.timer()
        .afterDelay(world.dice.time(COMPUTES))
        .wait(KJ_ASSERT_NONNULL(self.ownScope));
  }
  void runLater(kj::Function<void()> work) const override {
    auto& self = const_cast<RoleProcess&>(*this);
    self.later->add(self.endpoint.timer().afterDelay(world.dice.time(WRITES)).then(kj::mv(work)));
  }

  const Role role;
  const kj::String name;
  Endpoint& endpoint;

private:
  // As the launcher of processes sees it.
  runner::Failure failureOf(const kj::Exception& e) {
    bool isOfOther = e.getType() == kj::Exception::Type::DISCONNECTED;
    bool hasLostRole = world.disk.hasSaid(runner::LOST_ROLE_LINE);
    auto rank = isOfOther     ? runner::Failure::LOST_A_PEER
                : hasLostRole ? runner::Failure::SILENT
                              : runner::Failure::FAILED;
    return {rank, runner::saidBy(name, runner::reasonOf(e))};
  }
  void end(kj::Maybe<runner::Failure> failure) {
    hasEnded = true;
    endpoint.die();
    later = nullptr;
    lines->end();
    kj::Vector<RoleProcess*> others;
    for (auto other: world.running) {
      if (other != this) others.add(other);
    }
    world.running = kj::mv(others);
    ending.fulfiller->fulfill(kj::mv(failure));
  }
  void taskFailed(kj::Exception&& e) override { KJ_LOG(ERROR, e); }

  World& world;
  Provider provider;
  runner::RoleOptions options;
  kj::Own<Lines> lines = kj::refcounted<Lines>();
  kj::Maybe<kj::WaitScope&> ownScope;
  bool hasEnded = false;
  kj::PromiseFulfillerPair<kj::Maybe<runner::Failure>> ending;
  kj::Own<kj::TaskSet> later;
  kj::Promise<void> fiber = nullptr;
};

// A role as its launcher sees it.
class Group final: public runner::StartedGroup {
public:
  Group(World& world, kj::Own<RoleProcess> process): world(world), process(kj::mv(process)) {}
  ~Group() noexcept(false) {
    // A role on another host, which is frozen or cut off, hears nothing of its end.
    if (process->isOutOfReach()) {
      world.leftBehind++;
      world.left.add(kj::mv(process));
    }
  }

  kj::Promise<kj::Maybe<runner::Failure>> ended() override { return process->ended(); }
  kj::Own<kj::AsyncInputStream> events() { return process->events(); }

private:
  World& world;
  kj::Own<RoleProcess> process;
};

class SimulatedLauncher final: public runner::Launcher {
public:
  SimulatedLauncher(World& world, const runner::LaunchedRun& run): world(world), run(run) {}

  runner::StartedCoordinator startCoordinator(runner::ListenPlace) override {
    auto process = start(Role::COORDINATOR, 0, "");
    auto events = process->events();
    return {kj::mv(events), kj::mv(process)};
  }
  kj::Array<runner::RoleGroup> groups() const override {
    return runner::groupsHere(run.experiment().cluster);
  }
  kj::Own<runner::StartedGroup> start(
      const runner::RoleGroup& group, kj::StringPtr coordinator) override {
    return start(group.roles[0].role, group.roles[0].index, coordinator);
  }

private:
  kj::Own<Group> start(Role role, uint index, kj::StringPtr coordinator) {
    auto options = run.optionsOf(role, index, coordinator);
    return kj::heap<Group>(world, kj::heap<RoleProcess>(world, run.loaded, kj::mv(options)));
  }

  World& world;
  const runner::LaunchedRun& run;
};

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

// Lets the faults of a plan happen.
class Faults final: private kj::TaskSet::ErrorHandler {
public:
  Faults(World& world, const Plan& plan, const Expected& expected)
      : world(world),
        gone(kj::newPromiseAndFulfiller<void>()),
        tasks(kj::heap<kj::TaskSet>(static_cast<kj::TaskSet::ErrorHandler&>(*this))) {
    auto begin = world.clock.now();
    for (auto& fault: plan.faults) {
      bool isAtChange =
          fault.kind == Fault::KILL_AT_CHANGE || fault.kind == Fault::LOSE_POWER_AT_CHANGE;
      if (isAtChange) {
        atChange.add(AtChange{fault, uint64_t(fault.at * expected.changes)});
        continue;
      }
      auto moment = begin + int64_t(fault.at * expected.seconds * 1e9) * kj::NANOSECONDS;
      tasks->add(world.clock.timer().atTime(moment).then([this, &fault]() { apply(fault); }));
    }
    world.disk.onChange = [this](uint64_t number) {
      for (auto& each: atChange) {
        if (each.number == number && !isOver)
          loseAll(each.fault.kind == Fault::LOSE_POWER_AT_CHANGE);
      }
    };
  }
  ~Faults() noexcept(false) {
    world.disk.onChange = [](uint64_t) {};
  }

  // Resolves when the launcher is gone, with all roles.
  kj::Promise<void> launcherGone() { return kj::mv(gone.promise); }
  bool hasLostAll() const { return isOver; }
  bool hasLostPower() const { return lostPower; }
  // The machine runs again.
  void recover() {
    lostPower = false;
    gone = kj::newPromiseAndFulfiller<void>();
    isOver = false;
  }
  // No fault happens any more.
  void end() {
    isOver = true;
    tasks = nullptr;
  }

private:
  struct AtChange {
    const Fault& fault;
    uint64_t number;
  };

  void apply(const Fault& fault) {
    if (isOver) return;
    switch (fault.kind) {
      case Fault::KILL_WORKER:
      case Fault::KILL_SERVER:
      case Fault::KILL_COORDINATOR: {
        constexpr Role ROLES[] = {Role::WORKER, Role::SERVER, Role::COORDINATOR};
        KJ_IF_MAYBE(process, chosen(ROLES[fault.kind], fault.role)) process->kill();
        return;
      }
      case Fault::KILL_LAUNCHER:
      case Fault::LOSE_POWER:
        return loseAll(fault.kind == Fault::LOSE_POWER);
      case Fault::FREEZE:
        KJ_IF_MAYBE(process, chosen(nullptr, fault.role)) {
          process->endpoint.freezeUntil(world.clock.now() + fault.time);
        }
        return;
      case Fault::CUT:
        KJ_IF_MAYBE(process, chosen(nullptr, fault.role)) {
          process->endpoint.cutUntil(world.clock.now() + fault.time);
        }
        return;
      case Fault::BREAK_CONNECTION:
        world.network.breakOne();
        return;
      case Fault::FILL_DISK:
      case Fault::BREAK_DISK:
        return world.disk.fail(fault.kind == Fault::FILL_DISK ? ENOSPC : EIO,
            1 + fault.time / kj::SECONDS, "/checkpoints/");
      case Fault::MOVE_DATE:
        return world.clock.moveDate(fault.time);
      case Fault::KILL_AT_CHANGE:
      case Fault::LOSE_POWER_AT_CHANGE:
      case Fault::KINDS:
        KJ_UNREACHABLE;
    }
  }

  // Returns one of the processes that run, of that role if one is given.
  kj::Maybe<RoleProcess&> chosen(kj::Maybe<Role> role, uint index) {
    kj::Vector<RoleProcess*> all;
    for (auto process: world.running) {
      if (process->role == role.orDefault(process->role)) all.add(process);
    }
    if (all.empty()) return nullptr;
    return *all[index % all.size()];
  }

  void loseAll(bool power) {
    isOver = true;
    lostPower = power;
    for (auto process: world.running) {
      if (!process->isOutOfReach()) process->endpoint.die();
    }
    world.disk.stop();
    gone.fulfiller->fulfill();
  }
  void taskFailed(kj::Exception&& e) override { KJ_LOG(ERROR, e); }

  World& world;
  kj::PromiseFulfillerPair<void> gone;
  kj::Vector<AtChange> atChange;
  bool isOver = false;
  bool lostPower = false;
  kj::Own<kj::TaskSet> tasks;
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
    return kj::heap<SimulatedLauncher>(world, run);
  };
  runner::LaunchOptions options;
  options.newLauncher = &newLauncher;
  for (;;) {
    Provider provider(world.newEndpoint());
    kj::AsyncIoContext io{{}, kj::Own<kj::AsyncIoProvider>(&provider, kj::NullDisposer::instance),
        world.scope, noSignals()};
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

const char* const FAULT_NAMES[] = {"kill a worker", "kill a server", "kill the coordinator",
    "kill the launcher", "kill all at a change of the disk", "lose power",
    "lose power at a change of the disk", "freeze a role", "cut a role off", "break a connection",
    "fill the disk", "break the disk", "move the date"};
static_assert(kj::size(FAULT_NAMES) == Fault::KINDS);

Plan Plan::draw(uint64_t seed, size_t variants) {
  Dice dice(seed * 2 + 1);
  Plan plan;
  plan.seed = seed;
  plan.variant = dice.below(variants);
  plan.slowest = dice.chance(0.5) ? 4 * kj::MILLISECONDS : 40 * kj::MILLISECONDS;
  uint count = dice.chance(0.6) ? 1 : dice.chance(0.6) ? 2 : 3;
  for (uint i = 0; i < count; i++) {
    Fault fault{};
    fault.kind = Fault::Kind(dice.below(Fault::KINDS));
    fault.at = dice.fraction();
    fault.role = dice.below(8);
    fault.time = dice.time(30 * kj::SECONDS);
    if (fault.kind == Fault::MOVE_DATE) {
      fault.time = (int64_t(dice.below(7200)) - 3600) * kj::SECONDS;
    }
    plan.faults.add(fault);
  }
  return plan;
}

Plan Plan::clone() const {
  Plan copy;
  copy.seed = seed;
  copy.variant = variant;
  copy.slowest = slowest;
  for (auto& fault: faults) copy.faults.add(fault);
  return copy;
}

kj::String KJ_STRINGIFY(const Plan& plan) {
  kj::Vector<kj::String> faults;
  for (auto& fault: plan.faults) {
    faults.add(kj::str("  at ", fault.at, ": ", FAULT_NAMES[fault.kind], ", role ", fault.role,
        ", for ", fault.time / kj::MILLISECONDS, " ms"));
  }
  return kj::str("seed ", plan.seed, ", experiment ", plan.variant, ", data take up to ",
      plan.slowest / kj::MICROSECONDS, " us\n", kj::strArray(faults, "\n"));
}

Ended simulate(const runner::LoadedExperiment& loaded, kj::StringPtr root, const Plan& plan,
    const Expected& expected, Mistakes mistakes) {
  Ended ended;
  World world(root, plan);
  if (mistakes.skipsSyncs) world.disk.ignoreSyncs();
  auto begin = world.clock.now();
  runner::RunFolder folder{kj::str(root, "/run")};
  auto simulated = [&]() {
    Faults faults(world, plan, expected);
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

#include "tests/simulation/world.h"

#include <kj/debug.h>
#include <signal.h>

#include <deque>

#include "runner/logs/role_names.h"
#include "runner/roles/roles.h"
#include "runner/system/reason.h"

namespace simulation {

using runner::Role;

namespace {

// The longest time for which a role computes, and that the disk takes for a checkpoint.
constexpr auto COMPUTES = 20 * kj::MILLISECONDS;
constexpr auto WRITES = 400 * kj::MILLISECONDS;
constexpr size_t STACK_BYTES = 1 << 20;

// The coordinator waits there for the signal that asks it to save the run.
kj::UnixEventPort& signals() {
  kj::UnixEventPort::captureSignal(runner::SAVE_SIGNAL);
  static thread_local kj::UnixEventPort port;
  return port;
}

// Stacks are kept from role to role.
kj::FiberPool& stacks() {
  static thread_local kj::FiberPool pool(STACK_BYTES);
  return pool;
}

}  // namespace

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

World::World(kj::StringPtr root, uint64_t seed, kj::Duration slowest)
    : dice(seed), network(clock, dice, slowest), disk(root) {}

World::~World() noexcept(false) {
  // Nobody may have waited for the signal.
  sigset_t left;
  sigemptyset(&left);
  sigaddset(&left, runner::SAVE_SIGNAL);
  timespec none = {};
  ::sigtimedwait(&left, nullptr, &none);
}

kj::Maybe<RoleProcess&> World::processAt(const Endpoint& endpoint) const {
  for (auto process: running) {
    if (&process->endpoint == &endpoint) return *process;
  }
  return nullptr;
}

kj::AsyncIoContext World::ioOf(kj::AsyncIoProvider& provider, kj::WaitScope& scope) {
  return {
      {}, kj::Own<kj::AsyncIoProvider>(&provider, kj::NullDisposer::instance), scope, signals()};
}

RoleProcess::RoleProcess(
    World& world, const runner::LoadedExperiment& loaded, runner::RoleOptions ownOptions)
    : role(ownOptions.role),
      name(runner::roleName(role, ownOptions.index)),
      endpoint(world.newEndpoint()),
      world(world),
      provider(endpoint),
      options(kj::mv(ownOptions)),
      lines(kj::refcounted<Lines>()),
      ending(kj::newPromiseAndFulfiller<kj::Maybe<runner::Failure>>()),
      later(kj::heap<kj::TaskSet>(static_cast<kj::TaskSet::ErrorHandler&>(*this))) {
  auto paf = kj::newPromiseAndFulfiller<void>();
  leaving = kj::mv(paf.fulfiller);
  askedOnce = paf.promise.fork();
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
              .then(
                  [this]() {
                    if (!isDying) end(nullptr);
                  },
                  [this](kj::Exception&& e) {
                    if (!isDying) end(failureOf(e));
                  })
              .eagerlyEvaluate(nullptr);
}

RoleProcess::~RoleProcess() noexcept(false) {
  kill();
}

void RoleProcess::kill() {
  if (hasEnded) return;
  bool writes = role == Role::COORDINATOR;
  endpoint.die();
  if (writes) world.disk.stop();
  fiber = nullptr;
  if (writes) world.disk.go();
  end(runner::Failure{runner::Failure::KILLED, kj::str(name, ": killed by signal 9")});
}

void RoleProcess::killSoon() {
  if (hasEnded || isDying) return;
  isDying = true;
  endpoint.die();
  if (role == Role::COORDINATOR) world.disk.stop();
  // A fiber cannot end itself, and calls that the role has received cannot be cancelled.
  dying = kj::evalLast([this]() { kill(); }).eagerlyEvaluate(nullptr);
}

void RoleProcess::askToSave() {
  // A frozen process gets its signals when it wakes up.
  later->add(endpoint.timer().afterDelay(0 * kj::NANOSECONDS).then([]() {
    KJ_SYSCALL(::raise(runner::SAVE_SIGNAL));
    signals().poll();
  }));
}

void RoleProcess::askToLeave() {
  later->add(endpoint.timer().afterDelay(0 * kj::NANOSECONDS).then([this]() {
    KJ_IF_MAYBE(fulfiller, leaving) {
      (*fulfiller)->fulfill();
      leaving = nullptr;
    } else {
      killSoon();
    }
  }));
}

kj::Promise<void> RoleProcess::askedToLeave() const {
  return const_cast<RoleProcess&>(*this).askedOnce.addBranch();
}

kj::Own<kj::AsyncInputStream> RoleProcess::events() {
  return kj::addRef(*lines);
}

kj::AsyncIoContext RoleProcess::newIo() const {
  auto& self = const_cast<RoleProcess&>(*this);
  return World::ioOf(self.provider, KJ_ASSERT_NONNULL(self.ownScope));
}

void RoleProcess::yield() const {
  auto& self = const_cast<RoleProcess&>(*this);
  self.endpoint.timer()
      .afterDelay(world.dice.time(COMPUTES))
      .wait(KJ_ASSERT_NONNULL(self.ownScope));
}

void RoleProcess::runLater(kj::Function<void()> work) const {
  auto& self = const_cast<RoleProcess&>(*this);
  auto stalled = kj::max(world.stalledUntil - world.clock.now(), 0 * kj::NANOSECONDS);
  self.later->add(
      self.endpoint.timer().afterDelay(world.dice.time(WRITES) + stalled).then(kj::mv(work)));
}

void RoleProcess::die() const {
  auto& self = const_cast<RoleProcess&>(*this);
  self.killSoon();
  kj::Promise<void>(kj::NEVER_DONE).wait(KJ_ASSERT_NONNULL(self.ownScope));
  KJ_UNREACHABLE;
}

void RoleProcess::note(uint64_t step, kj::ArrayPtr<const uint64_t> draws) const {
  if (!endpoint.isDead() && !isLeft) world.records.add(options.index, step, draws);
}

runner::Failure RoleProcess::failureOf(const kj::Exception& e) {
  bool isOfOther = e.getType() == kj::Exception::Type::DISCONNECTED;
  bool hasLostRole = world.disk.hasSaid(runner::LOST_ROLE_LINE);
  auto rank = isOfOther     ? runner::Failure::LOST_A_PEER
              : hasLostRole ? runner::Failure::SILENT
                            : runner::Failure::FAILED;
  return {rank, runner::saidBy(name, runner::reasonOf(e))};
}

void RoleProcess::end(kj::Maybe<runner::Failure> failure) {
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

void RoleProcess::taskFailed(kj::Exception&& e) {
  KJ_LOG(ERROR, e);
}

namespace {

// A role as its launcher sees it.
class Group final: public runner::StartedGroup {
public:
  Group(World& world, kj::Own<RoleProcess> process): world(world), process(kj::mv(process)) {}
  ~Group() noexcept(false) {
    // A role on another host that is frozen or cut off does not learn that its launcher ends it.
    if (process->isOutOfReach()) {
      world.leftBehind++;
      process->leave();
      world.left.add(kj::mv(process));
    }
  }

  kj::Promise<kj::Maybe<runner::Failure>> ended() override { return process->ended(); }
  bool requestSave() override {
    process->askToSave();
    return true;
  }
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

}  // namespace

kj::Own<runner::Launcher> newSimulatedLauncher(World& world, const runner::LaunchedRun& run) {
  return kj::heap<SimulatedLauncher>(world, run);
}

}  // namespace simulation

// tests/simulation/world.h: the machine of a simulated job, and the processes that run on it.
#pragma once

#include <kj/async-io.h>
#include <kj/async-unix.h>
#include <kj/vector.h>

#include "runner/launch/launcher.h"
#include "runner/roles/one_thread.h"
#include "tests/simulation/account.h"
#include "tests/simulation/virtual_clock.h"
#include "tests/simulation/virtual_disk.h"
#include "tests/simulation/virtual_network.h"

namespace simulation {

class Lines;
class RoleProcess;

// One simulated job.
class World {
public:
  // The disk is in `root`. Data travel for up to `slowest`.
  World(kj::StringPtr root, uint64_t seed, kj::Duration slowest);
  ~World() noexcept(false);
  KJ_DISALLOW_COPY(World);

  VirtualClock clock;
  kj::EventLoop loop{clock};
  kj::WaitScope scope{loop};
  Dice dice;
  VirtualNetwork network;
  VirtualDisk disk;
  kj::Vector<kj::Own<Endpoint>> endpoints;  // of all processes, also of dead ones
  kj::Vector<RoleProcess*> running;
  // Roles that the launcher could not reach when it ended the others. They keep running.
  kj::Vector<kj::Own<RoleProcess>> left;
  uint leftBehind = 0;
  uint restarts = 0;
  kj::TimePoint stalledUntil = kj::origin<kj::TimePoint>();  // the disk, for checkpoints
  ReadRecords records;
  uint64_t trainingRecords = 0;
  uint64_t savedStep = 0;       // the step of the newest checkpoint that was reported to be on disk
  kj::Maybe<kj::String> wrong;  // the violation that was found

  Endpoint& newEndpoint() { return *endpoints.add(kj::heap<Endpoint>(network)); }
  // Returns the role that runs there. Null for the launcher, and for a role that has ended.
  kj::Maybe<RoleProcess&> processAt(const Endpoint& endpoint) const;
  // Returns an event loop for the process behind `provider`, on the thread of the simulation.
  static kj::AsyncIoContext ioOf(kj::AsyncIoProvider& provider, kj::WaitScope& scope);
};

// The source of KJ's streams and timers.
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

// A role in a fiber.
class RoleProcess final: public runner::OneThread, private kj::TaskSet::ErrorHandler {
public:
  // Starts the role. `world` and `loaded` must outlive it.
  RoleProcess(World& world, const runner::LoadedExperiment& loaded, runner::RoleOptions options);
  ~RoleProcess() noexcept(false);

  // SIGKILL.
  void kill();
  // The same, for a caller that the role itself may have called. From now on, nothing that the role
  // does has an effect.
  void killSoon();
  // SAVE_SIGNAL.
  void askToSave();
  // SIGTERM, for a worker whose job continues without it. The second one ends it.
  void askToLeave();

  // Resolves when it has ended, with null if it ended well. Call once.
  kj::Promise<kj::Maybe<runner::Failure>> ended() { return kj::mv(ending.promise); }
  // Whether it survives the end of its launcher for now: it is on another host, and does not notice
  // the end.
  bool isOutOfReach() const {
    bool isAway = role != runner::Role::COORDINATOR && endpoint.isAway();
    return !hasEnded && (isLeft || isAway);
  }
  // Its launcher has ended.
  void leave() { isLeft = true; }
  // Returns the stream of a coordinator's events for its launcher. Call once.
  kj::Own<kj::AsyncInputStream> events();

  // Of the role itself.
  kj::AsyncIoContext newIo() const override;
  void yield() const override;
  void runLater(kj::Function<void()> work) const override;
  kj::Promise<void> askedToLeave() const override;
  [[noreturn]] void die() const override;
  void note(uint64_t step, kj::ArrayPtr<const uint64_t> draws) const override;

  const runner::Role role;
  const kj::String name;
  Endpoint& endpoint;

private:
  // Its end from the view of the launcher.
  runner::Failure failureOf(const kj::Exception& e);
  void end(kj::Maybe<runner::Failure> failure);
  void taskFailed(kj::Exception&& e) override;

  World& world;
  Provider provider;
  runner::RoleOptions options;
  kj::Own<Lines> lines;
  kj::Maybe<kj::WaitScope&> ownScope;
  bool hasEnded = false;
  bool isDying = false;
  bool isLeft = false;
  kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> leaving;  // until it was asked to leave
  kj::ForkedPromise<void> askedOnce = nullptr;
  kj::PromiseFulfillerPair<kj::Maybe<runner::Failure>> ending;
  kj::Own<kj::TaskSet> later;
  kj::Promise<void> fiber = nullptr;
  kj::Promise<void> dying = nullptr;
};

// Starts roles in `world`, which must outlive it.
kj::Own<runner::Launcher> newSimulatedLauncher(World& world, const runner::LaunchedRun& run);

}  // namespace simulation

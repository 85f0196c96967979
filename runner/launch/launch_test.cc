#include "runner/launch/launch.h"

#include <capnp/message.h>
#include <doctest/doctest.h>
#include <stdlib.h>

#include "configs/language/failure.h"
#include "runner/logs/events.h"
#include "runner/system/files.h"

namespace runner {
namespace {

// A role that ends when the test says so.
struct FakeRole final: public StartedGroup {
  kj::PromiseFulfillerPair<kj::Maybe<Failure>> end =
      kj::newPromiseAndFulfiller<kj::Maybe<Failure>>();

  bool stopped = false;
  bool mayLeave = false;  // it was asked to

  kj::Promise<kj::Maybe<Failure>> ended() override { return kj::mv(end.promise); }
  bool isStopped() override { return stopped; }
  void requestLeave() override { mayLeave = true; }
};

// A launch of a coordinator, one server and two workers, all of them fake. Calls `then` when the
// last one was started.
struct FakeLaunch: public Launcher {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  LoadedExperiment loaded;
  kj::Own<kj::AsyncOutputStream> events;  // the coordinator's end
  kj::Vector<FakeRole*> roles;            // coordinator, server 0, worker 0, worker 1
  kj::Function<void(FakeLaunch&)> then;
  kj::Own<kj::AsyncInputStream> coordinatorEvents;  // until the coordinator is started
  kj::Maybe<SingleRunView> view;
  kj::Maybe<Launch> launch;
  kj::Promise<Outcome> outcome = nullptr;
  kj::Maybe<const RunFolder&> folder;

  explicit FakeLaunch(kj::Function<void(FakeLaunch&)> then,
      kj::StringPtr onLoss = "cluster.on_loss=fail", kj::StringPtr more = "cluster.workers=2")
      : then(kj::mv(then)) {
    kj::StringPtr overrides[] = {"cluster.servers=1", onLoss, more};
    loaded = loadExperiment("configs/fashion_mnist_dist_sync.toml", overrides);
    REQUIRE(loaded.errors == "");
  }

  Outcome run() {
    begin(io.provider->getTimer());
    say([](Event::Builder event) { event.initListening().setAddress("here"); });
    return outcome.wait(io.waitScope);
  }

  // Starts the coordinator. `timer` must outlive this object.
  void begin(kj::Timer& timer) {
    auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
    auto pipe = io.provider->newOneWayPipe();
    events = kj::mv(pipe.out);
    coordinatorEvents = kj::mv(pipe.in);
    auto& shown = view.emplace(experiment, 1, 1);
    outcome = launch.emplace(experiment, shown, timer, *this, folder).run();
    io.waitScope.poll();
  }

  StartedCoordinator startCoordinator(ListenPlace) override {
    return {kj::mv(coordinatorEvents), add()};
  }
  kj::Array<RoleGroup> groups() const override {
    return groupsHere(KJ_ASSERT_NONNULL(loaded.experiment).cluster);
  }
  kj::Own<StartedGroup> start(const RoleGroup&, kj::StringPtr coordinator) override {
    CHECK(coordinator == "here");
    return add();
  }

  kj::Own<FakeRole> add() {
    auto own = kj::heap<FakeRole>();
    roles.add(own.get());
    if (roles.size() == 4) then(*this);
    return own;
  }

  // The coordinator writes an event, which the launch then reads.
  template <typename Func>
  void say(Func&& fill) {
    auto text = line(fill);
    events->write(text.begin(), text.size()).wait(io.waitScope);
    io.waitScope.poll();
  }

  template <typename Func>
  static kj::String line(Func&& fill) {
    capnp::MallocMessageBuilder message;
    auto event = message.initRoot<Event>();
    fill(event);
    return kj::str(formatEvent(event), "\n");
  }

  void endWell(uint role) { roles[role]->end.fulfiller->fulfill(nullptr); }
  void fail(uint role, Failure::Rank rank, kj::StringPtr reason) {
    roles[role]->end.fulfiller->fulfill(Failure{rank, kj::str(reason)});
  }
};

kj::String failureOf(Outcome outcome) {
  return kj::mv(KJ_REQUIRE_NONNULL(outcome.failure, "it did not fail"));
}

TEST_CASE("Launch: is over when all roles have ended well") {
  FakeLaunch launch([](FakeLaunch& all) {
    for (uint role = 0; role < 4; role++) all.endWell(role);
  });
  auto outcome = launch.run();
  CHECK(outcome.failure == nullptr);
}

TEST_CASE("Launch: reports a role's own failure rather than that others lost it") {
  FakeLaunch launch([](FakeLaunch& all) {
    all.fail(2, Failure::LOST_A_PEER, "worker 0 lost the server");
    all.fail(0, Failure::LOST_A_PEER, "coordinator lost the server");
    all.fail(1, Failure::FAILED, "server 0 has no memory");
  });
  CHECK(failureOf(launch.run()) == "server 0 has no memory");
}

TEST_CASE("Launch: reports why the coordinator has left rather than that it has left") {
  FakeLaunch launch([](FakeLaunch& all) {
    auto gone = kj::str("server 0: the coordinator at 10.0.0.1:80", COORDINATOR_GONE);
    all.fail(1, Failure::LOST_A_PEER, gone);
    all.fail(0, Failure::LOST_A_PEER, "worker 1 closed its connection");
    all.fail(2, Failure::LOST_A_PEER, gone);
  });
  CHECK(failureOf(launch.run()) == "worker 1 closed its connection");
}

TEST_CASE("Launch: reports a role that was killed rather than one that failed") {
  FakeLaunch launch([](FakeLaunch& all) {
    all.fail(2, Failure::FAILED, "worker 0 failed");
    all.fail(1, Failure::KILLED, "server 0 was killed");
  });
  CHECK(failureOf(launch.run()) == "server 0 was killed");
}

TEST_CASE("Launch: ends its roles if it is dropped") {
  struct Gone final: public StartedGroup {
    bool& gone;
    explicit Gone(bool& gone): gone(gone) {}
    ~Gone() noexcept(false) { gone = true; }
    kj::Promise<kj::Maybe<Failure>> ended() override { return kj::NEVER_DONE; }
  };
  struct Silent final: public kj::AsyncInputStream {
    kj::Promise<size_t> tryRead(void*, size_t, size_t) override { return kj::NEVER_DONE; }
  };
  struct Alone final: public Launcher {
    bool gone = false;
    StartedCoordinator startCoordinator(ListenPlace) override {
      return {kj::heap<Silent>(), kj::heap<Gone>(gone)};
    }
    kj::Array<RoleGroup> groups() const override { return nullptr; }
    kj::Own<StartedGroup> start(const RoleGroup&, kj::StringPtr) override { KJ_UNREACHABLE; }
  };
  FakeLaunch fake([](FakeLaunch&) {});
  auto& experiment = KJ_ASSERT_NONNULL(fake.loaded.experiment);
  SingleRunView view(experiment, 1, 1);
  Alone launcher;
  {
    Launch launch(experiment, view, fake.io.provider->getTimer(), launcher);
    auto outcome = launch.run();
    CHECK_FALSE(outcome.poll(fake.io.waitScope));
    CHECK_FALSE(launcher.gone);
  }
  CHECK(launcher.gone);
}

// A launcher that has lost one of its hosts.
class Broken final: public Launcher {
public:
  kj::Promise<ListenPlace> prepare() override { return KJ_EXCEPTION(FAILED, "node2 is not there"); }
  StartedCoordinator startCoordinator(ListenPlace) override { KJ_UNREACHABLE; }
  kj::Array<RoleGroup> groups() const override { return nullptr; }
  kj::Own<StartedGroup> start(const RoleGroup&, kj::StringPtr) override { KJ_UNREACHABLE; }
};

TEST_CASE("Launch: fails with the reason why the hosts are not ready") {
  FakeLaunch fake([](FakeLaunch&) {});
  SingleRunView view(KJ_ASSERT_NONNULL(fake.loaded.experiment), 1, 1);
  Broken launcher;
  Launch launch(
      KJ_ASSERT_NONNULL(fake.loaded.experiment), view, fake.io.provider->getTimer(), launcher);
  CHECK(failureOf(launch.run().wait(fake.io.waitScope)) == "node2 is not there");
}

TEST_CASE("Launch: fails if a line of the coordinator is not an event") {
  FakeLaunch launch(
      [](FakeLaunch& all) { all.events->write("nonsense\n", 9).detach([](kj::Exception&&) {}); });
  CHECK(
      failureOf(launch.run()) == "the coordinator has sent a line that is not an event: nonsense");
}

TEST_CASE("Launch: a command that ends before its ranks train is not started again") {
  FakeLaunch launch([](FakeLaunch& all) {
    all.fail(2, Failure::COMMAND_ENDED, "mpirun ended with exit code 1");
  });
  CHECK(failureOf(launch.run()) == "mpirun ended with exit code 1");
  CHECK_FALSE(KJ_ASSERT_NONNULL(launch.launch).wasLost());
}

TEST_CASE("Launch: reports that a rank was lost rather than that the command has ended") {
  FakeLaunch launch([](FakeLaunch& all) {
    all.fail(2, Failure::COMMAND_ENDED, "mpirun ended with exit code 1");
    all.fail(0, Failure::LOST_A_PEER, "worker 1 closed its connection");
  });
  CHECK(failureOf(launch.run()) == "worker 1 closed its connection");
  CHECK(KJ_ASSERT_NONNULL(launch.launch).wasLost());
}

// -------------------------------------------------------------------------------------------------
// Silence, by a clock that the test sets.

struct TimedLaunch: public FakeLaunch {
  kj::TimerImpl timer{kj::origin<kj::TimePoint>()};

  TimedLaunch(): FakeLaunch([](FakeLaunch&) {}) { begin(timer); }
  // The other workers continue if one is lost, and there may be 1 to 4.
  explicit TimedLaunch(const RunFolder& of)
      : FakeLaunch(
            [](FakeLaunch&) {}, "cluster.on_loss=continue", "cluster.elastic={min=1,max=4}") {
    folder = of;
    begin(timer);
  }
  // Destroys what waits for the timer before the timer.
  ~TimedLaunch() {
    outcome = nullptr;
    launch = nullptr;
  }

  // The launcher itself is stopped for `time`.
  void stop(kj::Duration time) { timer.advanceTo(timer.now() + time); }
  // The launcher runs for `time` without receiving anything.
  void pass(kj::Duration time) {
    for (auto end = timer.now() + time; timer.now() < end;) {
      stop(100 * kj::MILLISECONDS);
      io.waitScope.poll();
    }
  }
  void listen() {
    say([](Event::Builder event) { event.initListening().setAddress("here"); });
    REQUIRE(roles.size() == 4);
  }
  void join(Role role, uint index) {
    say([&](Event::Builder event) {
      event.setRole(role);
      event.setIndex(index);
      event.initJoined();
    });
  }
  void joinAll() {
    listen();
    join(Role::SERVER, 0);
    for (uint rank = 0; rank < 2; rank++) join(Role::WORKER, rank);
  }
  void progress() {
    say([](Event::Builder event) { event.initProgress(); });
  }
  bool isOver() { return outcome.poll(io.waitScope); }
  kj::String failure() {
    REQUIRE(isOver());
    return failureOf(outcome.wait(io.waitScope));
  }
};

TEST_CASE("Launch: after the launcher was stopped, the coordinator does not count as silent") {
  TimedLaunch launch;
  launch.listen();
  launch.pass(1 * kj::SECONDS);
  launch.stop(1 * kj::HOURS);
  launch.pass(1 * kj::SECONDS);
  CHECK_FALSE(launch.isOver());
  launch.progress();
  launch.pass(4 * kj::SECONDS);
  CHECK_FALSE(launch.isOver());
  launch.pass(2 * kj::SECONDS);
  CHECK(launch.failure().startsWith("the coordinator has been silent for 5 s; "));
  // The job can be started again, even if it has not trained yet.
  CHECK(KJ_ASSERT_NONNULL(launch.launch).wasLost());
}

TEST_CASE("Launch: reports a silent coordinator as soon as the time-out has passed") {
  TimedLaunch launch;
  launch.listen();
  launch.pass(4900 * kj::MILLISECONDS);
  CHECK_FALSE(launch.isOver());
  launch.pass(500 * kj::MILLISECONDS);
  CHECK(launch.failure().startsWith("the coordinator has been silent for 5 s; "));
}

TEST_CASE("Launch: fails if the coordinator never reports, and names start_timeout_s") {
  TimedLaunch launch;
  launch.pass(59 * kj::SECONDS);
  CHECK_FALSE(launch.isOver());
  launch.pass(2 * kj::SECONDS);
  auto failure = launch.failure();
  CHECK(failure.startsWith("the coordinator has not reported within 60 s"));
  CHECK(failure.endsWith("(cluster.start_timeout_s)"));
  CHECK_FALSE(KJ_ASSERT_NONNULL(launch.launch).wasLost());
}

TEST_CASE("Launch: roles have start_timeout_s to join, counted from when they were started") {
  TimedLaunch launch;
  auto pass = [&](uint seconds) {
    for (uint second = 0; second < seconds; second++) {
      launch.pass(1 * kj::SECONDS);
      launch.progress();
    }
  };
  pass(50);
  // The launcher is stopped before it has read where the coordinator listens.
  launch.stop(1 * kj::HOURS);
  launch.listen();
  launch.join(Role::SERVER, 0);
  launch.join(Role::WORKER, 1);
  launch.say([](Event::Builder event) { event.initWaiting().setRefused("somebody was refused"); });
  pass(59);
  CHECK_FALSE(launch.isOver());
  pass(2);
  CHECK(launch.failure() ==
        "not joined within 60 s: worker 0 (somebody was refused); see why they did not start, or "
        "raise cluster.start_timeout_s");
  CHECK_FALSE(KJ_ASSERT_NONNULL(launch.launch).wasLost());
}

TEST_CASE("Launch: a role that is stopped before it joins fails the run after the silence limit") {
  TimedLaunch launch;
  launch.listen();
  launch.join(Role::WORKER, 0);
  launch.roles[3]->stopped = true;
  // The coordinator itself keeps running.
  auto pass = [&](uint seconds) {
    for (uint second = 0; second < seconds; second++) {
      launch.pass(1 * kj::SECONDS);
      launch.progress();
    }
  };
  pass(4);
  CHECK_FALSE(launch.isOver());
  // A role that continues in time is not lost, however often it is stopped.
  launch.roles[3]->stopped = false;
  pass(1);
  launch.roles[3]->stopped = true;
  pass(4);
  CHECK_FALSE(launch.isOver());
  pass(2);
  CHECK(launch.failure().startsWith(
      "worker 1 was stopped by a signal before it joined the job, and has not continued for 5 s"));
}

TEST_CASE("Launch: a coordinator that is stopped before it reports is named as stopped") {
  TimedLaunch launch;
  launch.roles[0]->stopped = true;
  launch.pass(6 * kj::SECONDS);
  CHECK(launch.failure().startsWith("coordinator was stopped by a signal before it"));
}

TEST_CASE("Launch: leaves it to the coordinator to watch roles that have joined") {
  TimedLaunch launch;
  launch.listen();
  launch.join(Role::WORKER, 1);
  launch.roles[3]->stopped = true;
  for (uint second = 0; second < 8; second++) {
    launch.pass(1 * kj::SECONDS);
    launch.progress();
  }
  CHECK_FALSE(launch.isOver());
}

TEST_CASE("Launch: a worker that was killed and is not replaced does not explain later failures") {
  RunFolder folder{kj::str(::getenv("TEST_TMPDIR"), "/without_worker")};
  makeFolders(folder.path);
  TimedLaunch launch(folder);
  launch.joinAll();
  launch.fail(3, Failure::KILLED, "worker 1 was killed");
  launch.io.waitScope.poll();
  // Before the coordinator notices it, the user wants one worker fewer.
  wantWorkers(folder, 1);
  launch.pass(1 * kj::SECONDS);
  launch.say([](Event::Builder event) {
    event.setRole(Role::WORKER);
    event.setIndex(1);
    event.initMembership().setWorkers(1);
  });
  launch.fail(0, Failure::FAILED, "the disk of the coordinator is full");
  CHECK(launch.failure() == "the disk of the coordinator is full");
}

TEST_CASE("Launch: if fewer workers are wanted, those that still start leave first") {
  RunFolder folder{kj::str(::getenv("TEST_TMPDIR"), "/starting_workers")};
  makeFolders(folder.path);
  TimedLaunch launch(folder);
  launch.joinAll();
  wantWorkers(folder, 4);
  launch.pass(1 * kj::SECONDS);
  REQUIRE(launch.roles.size() == 6);
  wantWorkers(folder, 2);
  launch.pass(1 * kj::SECONDS);
  for (auto role: launch.roles) CHECK_FALSE(role->mayLeave);
  for (uint rank = 2; rank < 4; rank++) launch.join(Role::WORKER, rank);
  launch.pass(1 * kj::SECONDS);
  for (uint i: kj::indices(launch.roles)) CHECK(launch.roles[i]->mayLeave == (i >= 4));
  wantWorkers(folder, 1);
  launch.pass(1 * kj::SECONDS);
  CHECK_FALSE(launch.roles[2]->mayLeave);
  CHECK(launch.roles[3]->mayLeave);
}

TEST_CASE("Launch: a worker whose processes never become members is not started without end") {
  RunFolder folder{kj::str(::getenv("TEST_TMPDIR"), "/without_member")};
  makeFolders(folder.path);
  TimedLaunch launch(folder);
  launch.joinAll();
  auto isLost = [&](auto&& fill) {
    launch.fail(launch.roles.size() - 1, Failure::KILLED, "worker 1 was killed");
    launch.io.waitScope.poll();
    launch.say([&](Event::Builder event) {
      event.setRole(Role::WORKER);
      event.setIndex(1);
      fill(event);
    });
  };
  auto isLostAsMember = [&]() {
    isLost([](Event::Builder event) { event.initMembership().setWorkers(1); });
  };
  auto isLostAsNewcomer = [&]() {
    launch.join(Role::WORKER, 1);
    isLost([](Event::Builder event) { event.setLostNewcomer(); });
  };
  isLostAsMember();
  for (uint i = 0; i < 4; i++) isLostAsNewcomer();
  launch.join(Role::WORKER, 1);
  launch.say([](Event::Builder event) {
    event.setRole(Role::WORKER);
    event.setIndex(1);
    event.initMembership().setJoined(true);
  });
  // From here on, the count begins anew.
  isLostAsMember();
  for (uint i = 0; i < 4; i++) isLostAsNewcomer();
  CHECK_FALSE(launch.isOver());
  isLostAsNewcomer();
  CHECK(launch.failure() ==
        "worker 1 was killed; 5 processes of worker 1 have ended in a row before they were members "
        "of the job");
}

TEST_CASE("launch: if the launcher cannot be made, records the reason as the failure of the run") {
  auto loaded = loadExperiment("configs/fashion_mnist_dist_sync.toml", nullptr);
  RunFolder folder{kj::str(::getenv("TEST_TMPDIR"), "/without_launcher")};
  makeFolders(folder.path);
  SingleRunView view(KJ_ASSERT_NONNULL(loaded.experiment), 1, 1);
  auto io = kj::setupAsyncIo();
  auto newLauncher = [](const LaunchedRun&) -> kj::Own<Launcher> {
    configs::fail("the secret cannot be read");
  };
  kj::ConstFunction<kj::Own<Launcher>(const LaunchedRun&)> make = newLauncher;
  LaunchOptions options{.newLauncher = &make};
  auto outcome = launch(loaded, folder, view, io, options).wait(io.waitScope);
  CHECK(failureOf(kj::mv(outcome)) == "the secret cannot be read");
  CHECK(lastLineOf(folder.events()).endsWith("\"the secret cannot be read\"}}"));
}

// An event loop whose clock the test sets.
struct Timed final: public kj::AsyncIoProvider {
  kj::AsyncIoContext own = kj::setupAsyncIo();
  kj::TimerImpl timer{kj::origin<kj::TimePoint>()};

  kj::OneWayPipe newOneWayPipe() override { return own.provider->newOneWayPipe(); }
  kj::TwoWayPipe newTwoWayPipe() override { return own.provider->newTwoWayPipe(); }
  kj::Network& getNetwork() override { return own.provider->getNetwork(); }
  kj::Timer& getTimer() override { return timer; }
  PipeThread newPipeThread(
      kj::Function<void(kj::AsyncIoProvider&, kj::AsyncIoStream&, kj::WaitScope&)>) override {
    KJ_UNIMPLEMENTED("the test has one thread");
  }
};

TEST_CASE("launch: doubles the pause after each failed attempt") {
  kj::StringPtr overrides[] = {"cluster.on_loss=restart", "checkpoint.every_s=60"};
  auto loaded = loadExperiment("configs/fashion_mnist_dist_sync.toml", overrides);
  REQUIRE(loaded.errors == "");
  RunFolder folder{kj::str(::getenv("TEST_TMPDIR"), "/pauses")};
  makeFolders(folder.path);
  SingleRunView view(KJ_ASSERT_NONNULL(loaded.experiment), 1, 1);
  Timed timed;
  kj::AsyncIoContext io{kj::mv(timed.own.lowLevelProvider),
      kj::Own<kj::AsyncIoProvider>(&timed, kj::NullDisposer::instance), timed.own.waitScope,
      timed.own.unixEventPort};
  kj::Vector<int64_t> attempts;  // when they began, in s
  auto newLauncher = [&](const LaunchedRun&) -> kj::Own<Launcher> {
    attempts.add((timed.timer.now() - kj::origin<kj::TimePoint>()) / kj::SECONDS);
    return kj::heap<Broken>();
  };
  kj::ConstFunction<kj::Own<Launcher>(const LaunchedRun&)> make = newLauncher;
  // The run was lost before, so that its hosts may come back.
  LaunchOptions options{.wasLost = true, .newLauncher = &make};
  auto outcome = launch(loaded, folder, view, io, options);
  for (uint i = 0; i < 200 && !outcome.poll(io.waitScope); i++) {
    timed.timer.advanceTo(timed.timer.now() + 100 * kj::MILLISECONDS);
  }
  REQUIRE(outcome.poll(io.waitScope));
  CHECK(failureOf(outcome.wait(io.waitScope))
            .startsWith("node2 is not there; 5 attempts in a row made no step"));
  CHECK(kj::strArray(attempts, " ") == "0 1 3 7 15");
}

}  // namespace
}  // namespace runner

#include "runner/launch.h"

#include <capnp/message.h>
#include <doctest/doctest.h>

#include "runner/run_log.h"

namespace runner {
namespace {

// A role that ends when the test says so.
struct FakeRole final: public StartedRole {
  kj::Own<kj::AsyncInputStream> stream;
  kj::PromiseFulfillerPair<kj::Maybe<Failure>> end =
      kj::newPromiseAndFulfiller<kj::Maybe<Failure>>();

  explicit FakeRole(kj::Own<kj::AsyncInputStream> stream): stream(kj::mv(stream)) {}
  kj::Own<kj::AsyncInputStream> events() override { return kj::mv(stream); }
  kj::Promise<kj::Maybe<Failure>> ended() override { return kj::mv(end.promise); }
};

// A launch of one server and two workers, none of which is there. `then` is called when the last
// one was started.
struct FakeLaunch {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  LoadedExperiment loaded;
  kj::Own<kj::AsyncOutputStream> events;  // the coordinator's end
  kj::Vector<FakeRole*> roles;            // coordinator, server 0, worker 0, worker 1
  kj::Function<void(FakeLaunch&)> then;

  explicit FakeLaunch(kj::Function<void(FakeLaunch&)> then): then(kj::mv(then)) {
    kj::StringPtr overrides[] = {"cluster.servers=1"};
    loaded = loadExperiment("configs/fashion_mnist_dist_sync.toml", overrides);
    REQUIRE(loaded.errors == "");
  }

  Outcome run() {
    auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
    SingleRunView view(experiment, 1, 1);
    auto pipe = io.provider->newOneWayPipe();
    events = kj::mv(pipe.out);
    auto listening = line([](Event::Builder event) { event.initListening().setAddress("here"); });
    auto written = events->write(listening.begin(), listening.size()).eagerlyEvaluate(nullptr);
    Launch launch(experiment, view, io.provider->getTimer(),
        [&](Role role, uint index, kj::StringPtr coordinator) -> kj::Own<StartedRole> {
          CHECK(coordinator == (role == Role::COORDINATOR ? "" : "here"));
          auto own = kj::heap<FakeRole>(kj::mv(pipe.in));
          roles.add(own.get());
          if (roles.size() == 4) then(*this);
          return own;
        });
    return launch.run().wait(io.waitScope);
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

TEST_CASE("Launch: it is over when all roles have ended well") {
  FakeLaunch launch([](FakeLaunch& all) {
    for (uint role = 0; role < 4; role++) all.endWell(role);
  });
  auto outcome = launch.run();
  CHECK(outcome.failure == nullptr);
}

TEST_CASE("Launch: a role's own failure is told before what others say of losing it") {
  FakeLaunch launch([](FakeLaunch& all) {
    all.fail(2, Failure::LOST_A_PEER, "worker 0 lost the server");
    all.fail(0, Failure::LOST_A_PEER, "coordinator lost the server");
    all.fail(1, Failure::FAILED, "server 0 has no memory");
  });
  CHECK(failureOf(launch.run()) == "server 0 has no memory");
}

TEST_CASE("Launch: a role that was killed is told before one that failed") {
  FakeLaunch launch([](FakeLaunch& all) {
    all.fail(2, Failure::FAILED, "worker 0 failed");
    all.fail(1, Failure::KILLED, "server 0 was killed");
  });
  CHECK(failureOf(launch.run()) == "server 0 was killed");
}

TEST_CASE("Launch: a run that is given up takes its roles with it") {
  struct Gone final: public StartedRole {
    bool& gone;
    explicit Gone(bool& gone): gone(gone) {}
    ~Gone() noexcept(false) { gone = true; }
    kj::Own<kj::AsyncInputStream> events() override { return kj::heap<Silent>(); }
    kj::Promise<kj::Maybe<Failure>> ended() override { return kj::NEVER_DONE; }

    struct Silent final: public kj::AsyncInputStream {
      kj::Promise<size_t> tryRead(void*, size_t, size_t) override { return kj::NEVER_DONE; }
    };
  };
  FakeLaunch fake([](FakeLaunch&) {});
  auto& experiment = KJ_ASSERT_NONNULL(fake.loaded.experiment);
  SingleRunView view(experiment, 1, 1);
  bool gone = false;
  {
    Launch launch(experiment, view, fake.io.provider->getTimer(),
        [&](Role, uint, kj::StringPtr) -> kj::Own<StartedRole> { return kj::heap<Gone>(gone); });
    auto outcome = launch.run();
    CHECK_FALSE(outcome.poll(fake.io.waitScope));
    CHECK_FALSE(gone);
  }
  CHECK(gone);
}

TEST_CASE("Launch: a line of the coordinator that is no event ends the run") {
  FakeLaunch launch(
      [](FakeLaunch& all) { all.events->write("nonsense\n", 9).detach([](kj::Exception&&) {}); });
  CHECK(failureOf(launch.run()).size() > 0);
}

}  // namespace
}  // namespace runner

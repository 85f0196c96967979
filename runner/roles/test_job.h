// runner/roles/test_job.h: a job whose roles are called directly, for tests of the coordinator.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <kj/timer.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "runner/logs/events.h"
#include "runner/roles/coordinator.h"
#include "runner/system/files.h"
#include "runner/system/version.h"

namespace runner {

constexpr uint64_t TEXT_BYTES_MAX = 1 << 24;

// A job of one server and two workers. The test sets its clock and calls its roles directly.
struct TestJob {
  kj::EventLoop loop;
  kj::WaitScope waitScope{loop};
  kj::TimerImpl timer{kj::origin<kj::TimePoint>()};
  LoadedExperiment loaded;
  kj::Own<ModelFacts> facts;
  RunFolder folder;
  kj::Own<RunLog> log;
  kj::Own<Job> job;
  kj::Promise<void> over = nullptr;

  explicit TestJob(kj::StringPtr name, kj::StringPtr silence = "cluster.silence_timeout_s=5"_kj,
      bool launched = false) {
    kj::StringPtr overrides[] = {"cluster.servers=1", "cluster.start_timeout_s=30", silence};
    loaded = loadExperiment("configs/fashion_mnist_dist_sync.toml", overrides);
    REQUIRE(loaded.errors == "");
    auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
    facts = kj::heap<ModelFacts>(experiment);
    folder.path = kj::str(::getenv("TEST_TMPDIR"), "/", name);
    REQUIRE(::mkdir(folder.path.cStr(), 0777) == 0);
    log = kj::heap<RunLog>(folder, *experiment.log.style,
        RunLog::toLauncher(kj::AutoCloseFd(::open(told().cStr(), O_WRONLY | O_CREAT, 0666))),
        TensorBoard(folder.tensorboard()));
    job =
        kj::refcounted<Job>(loaded, *facts, folder, *log, timer, kj::systemPreciseCalendarClock());
    over = job->run(launched).eagerlyEvaluate(nullptr);
  }

  // The file of the events that go to the launcher.
  kj::String told() const { return kj::str(folder.path, "/told.jsonl"); }
  // Calls `take` for each of these events.
  void eachTold(kj::FunctionParam<void(Event::Reader)> take) const {
    auto text = readWhole(told(), TEXT_BYTES_MAX);
    for (kj::StringPtr rest = text; rest.size() > 0;) {
      auto end = KJ_ASSERT_NONNULL(rest.findFirst('\n'));
      capnp::MallocMessageBuilder message;
      auto event = message.initRoot<Event>();
      parseEvent(kj::heapString(rest.slice(0, end)), event);
      take(event);
      rest = rest.slice(end + 1);
    }
  }

  class Hears final: public Member::Server {
  public:
    explicit Hears(uint& heard): heard(heard) {}
    kj::Promise<void> end(EndContext) override {
      heard++;
      return kj::READY_NOW;
    }
    kj::Promise<void> count(CountContext context) override {
      auto pushes = context.getResults().initPushes();
      pushes.setPushed(800);
      pushes.setDropped(12);
      pushes.initStaleness(1).set(0, 788);
      return kj::READY_NOW;
    }
    kj::Promise<void> saveShard(SaveShardContext) override { return kj::READY_NOW; }

  private:
    uint& heard;
  };
  uint heard = 0;

  kj::Promise<Session::Client> join(Role role, uint index, kj::StringPtr digest,
      kj::StringPtr version = VERSION, kj::StringPtr host = nullptr) {
    auto request = job->bootstrap().joinRequest();
    request.setRole(role);
    request.setIndex(index);
    request.setDigest(digest);
    request.setVersion(version);
    request.setHost(host);
    if (role == Role::SERVER) {
      auto address = request.initAddress();
      address.setTcp("127.0.0.1:1");
      address.setLocal("unix-abstract:one");
    }
    request.setMember(kj::heap<Hears>(heard));
    return request.send().then(
        [](capnp::Response<Coordinator::JoinResults>&& response) { return response.getSession(); });
  }
  Session::Client join(Role role, uint index) {
    return join(role, index, loaded.digest).wait(waitScope);
  }

  void pass(kj::Duration time) {
    // A time-out is a chain of short waits.
    for (auto end = timer.now() + time; timer.now() < end;) {
      timer.advanceTo(timer.now() + 100 * kj::MILLISECONDS);
      waitScope.poll();
    }
  }

  kj::String failure() {
    REQUIRE(over.poll(waitScope));
    kj::String reason;
    over.then([]() {}, [&](kj::Exception&& e) { reason = kj::str(e.getDescription()); })
        .wait(waitScope);
    return reason;
  }
};

// Lets a worker meet the others after epoch 1. Half of its images are correct.
inline kj::Promise<capnp::Response<Session::MeetResults>> meet(Session::Client& session,
    double loss, uint64_t images, MeetingPoint point = MeetingPoint::VALIDATED) {
  auto request = session.meetRequest();
  request.setEpoch(1);
  request.setPoint(point);
  auto result = request.initResult();
  result.setLossSum(loss);
  result.setCorrect(images / 2);
  result.setImages(images);
  return request.send();
}

}  // namespace runner

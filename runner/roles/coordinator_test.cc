#include "runner/roles/coordinator.h"

#include <capnp/message.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <kj/timer.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmath>

#include "runner/experiment/model_facts.h"
#include "runner/logs/run_log.h"
#include "runner/system/files.h"
#include "runner/system/version.h"

namespace runner {
namespace {

constexpr uint64_t TEXT_BYTES_MAX = 1 << 24;

// A job of one server and two workers, whose clock is turned by hand and whose roles are called
// directly.
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

  // The events that go to the launcher.
  kj::String told() const { return kj::str(folder.path, "/told.jsonl"); }

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

kj::Promise<capnp::Response<Session::MeetResults>> meet(Session::Client& session, double loss,
    uint64_t images, MeetingPoint point = MeetingPoint::VALIDATED) {
  auto request = session.meetRequest();
  request.setEpoch(1);
  request.setPoint(point);
  auto result = request.initResult();
  result.setLossSum(loss);
  result.setCorrect(images / 2);
  result.setImages(images);
  return request.send();
}

TEST_CASE("Job: tells a role with the same settings but other records that its images differ") {
  TestJob job("images");
  auto request = job.job->bootstrap().joinRequest();
  request.setRole(Role::WORKER);
  request.setDigest("another");
  request.setVersion(VERSION);
  request.setSettings(job.loaded.settings);
  CHECK_THROWS_WITH(request.send().ignoreResult().wait(job.waitScope),
      doctest::Contains("worker 0 has other images than the coordinator: "));
}

TEST_CASE("Job: refuses a worker that meets or finishes before all roles have joined") {
  TestJob job("too_early");
  auto first = job.join(Role::WORKER, 0), second = job.join(Role::WORKER, 1);
  CHECK_THROWS_WITH(meet(first, 1, 10).ignoreResult().wait(job.waitScope),
      doctest::Contains("before all roles have joined"));
  CHECK_THROWS_WITH(second.finishRequest().send().ignoreResult().wait(job.waitScope),
      doctest::Contains("before all roles have joined"));
}

TEST_CASE("Job: refuses the last event of a run from a role") {
  TestJob job("last_event");
  auto worker = job.join(Role::WORKER, 0);
  auto request = worker.reportRequest();
  request.initEvent().initFinished().setWeightsSha256("of nothing");
  CHECK_THROWS_WITH(request.send().ignoreResult().wait(job.waitScope),
      doctest::Contains("only the coordinator and the launcher end a run"));
  CHECK(job.log->lastEvent() == nullptr);
}

TEST_CASE("Job: names those who were refused if a role is missing later") {
  TestJob job("refused");
  for (uint i = 0; i < 9; i++) {
    job.job->noteRefused("a connection from 10.0.0.3 was refused: it has another secret");
  }
  job.join(Role::WORKER, 0, "another")
      .then([](auto&&) {}, [](kj::Exception&&) {})
      .wait(job.waitScope);
  job.join(Role::SERVER, 0, "another")
      .then([](auto&&) {}, [](kj::Exception&&) {})
      .wait(job.waitScope);
  auto server = job.join(Role::SERVER, 0);
  for (uint second = 0; second < 31; second++) {
    server.heartbeatRequest().send().wait(job.waitScope);
    job.pass(1 * kj::SECONDS);
  }
  CHECK(job.failure() ==
        "not joined within 30 s: worker 0, worker 1 (worker 0 was started with a different "
        "experiment file than the coordinator: start all roles with the same file and the same "
        "--set; a connection from 10.0.0.3 was refused: it has another secret); see why they did "
        "not start, or raise cluster.start_timeout_s");
}

TEST_CASE("Job: tells for which roles it waits, at growing intervals") {
  TestJob job("waiting");
  // Returns the seconds of waiting that a line names.
  auto lines = [&]() {
    kj::Vector<double> found;
    auto text = readWhole(job.told(), TEXT_BYTES_MAX);
    for (kj::StringPtr rest = text; rest.size() > 0;) {
      auto end = KJ_ASSERT_NONNULL(rest.findFirst('\n'));
      capnp::MallocMessageBuilder message;
      auto event = message.initRoot<Event>();
      parseEvent(kj::heapString(rest.slice(0, end)), event);
      rest = rest.slice(end + 1);
      if (!event.isWaiting()) continue;
      CHECK(event.getWaiting().getRoles() == "server 0, worker 1");
      CHECK(event.getWaiting().getLimitS() == 30);
      found.add(event.getWaiting().getWaitedS());
    }
    return found;
  };
  auto worker = job.join(Role::WORKER, 0);
  auto pass = [&](uint seconds) {
    for (uint second = 0; second < seconds; second++) {
      worker.heartbeatRequest().send().wait(job.waitScope);
      job.pass(1 * kj::SECONDS);
    }
  };
  pass(4);
  CHECK(lines().size() == 0);
  pass(12);
  auto waited = lines();
  REQUIRE(waited.size() == 2);
  CHECK(waited[0] == doctest::Approx(5).epsilon(0.05));
  CHECK(waited[1] == doctest::Approx(15).epsilon(0.05));
  // The roles may still join.
  auto started = worker.startRequest().send();
  auto server = job.join(Role::SERVER, 0);
  CHECK_FALSE(started.poll(job.waitScope));
  auto late = job.join(Role::WORKER, 1);
  server.startRequest().send().wait(job.waitScope);
  started.wait(job.waitScope);
}

TEST_CASE("Job: names the roles that do not join in time") {
  TestJob job("missing");
  auto server = job.join(Role::SERVER, 0);
  auto worker = job.join(Role::WORKER, 1);
  for (int second = 0; second < 31; second++) {
    server.heartbeatRequest().send().wait(job.waitScope);
    worker.heartbeatRequest().send().wait(job.waitScope);
    job.pass(1 * kj::SECONDS);
  }
  CHECK(job.failure() ==
        "not joined within 30 s: worker 0; see why they did not start, or raise "
        "cluster.start_timeout_s");
}

TEST_CASE("Job: leaves it to a launcher to judge whether roles join in time") {
  TestJob job("launched", "cluster.silence_timeout_s=5", true);
  job.pass(1 * kj::HOURS);
  CHECK_FALSE(job.over.poll(job.waitScope));
}

TEST_CASE("Job: answers a heartbeat with the coordinator's monotonic clock") {
  TestJob job("clock");
  auto server = job.join(Role::SERVER, 0);
  auto& clock = kj::systemPreciseMonotonicClock();
  auto asked = clock.now();
  auto answer = server.heartbeatRequest().send().wait(job.waitScope);
  auto there = kj::origin<kj::TimePoint>() + answer.getClockNs() * kj::NANOSECONDS;
  CHECK(asked <= there);
  CHECK(there <= clock.now());
}

TEST_CASE("Job: all roles start when the servers serve, and learn their addresses and names") {
  TestJob job("start");
  auto server = job.join(Role::SERVER, 0, job.loaded.digest, VERSION, "node2").wait(job.waitScope);
  auto first = job.join(Role::WORKER, 0);
  auto started = first.startRequest().send();
  CHECK_FALSE(started.poll(job.waitScope));
  auto second = job.join(Role::WORKER, 1);
  CHECK_FALSE(started.poll(job.waitScope));
  server.startRequest().send().wait(job.waitScope);
  auto response = started.wait(job.waitScope);
  REQUIRE(response.getShards().size() == 1);
  CHECK(kj::StringPtr(response.getShards()[0].getTcp()) == "127.0.0.1:1");
  CHECK(kj::StringPtr(response.getShards()[0].getLocal()) == "unix-abstract:one");
  REQUIRE(response.getNames().size() == 1);
  CHECK(kj::StringPtr(response.getNames()[0]) == "server 0 on node2");
}

TEST_CASE("Job: logs the servers' counts after each epoch, with a line about dropped pushes") {
  TestJob job("counted");
  auto server = job.join(Role::SERVER, 0);
  auto first = job.join(Role::WORKER, 0), second = job.join(Role::WORKER, 1);
  auto met = meet(first, 1, 10, MeetingPoint::TRAINED);
  meet(second, 1, 10, MeetingPoint::TRAINED).wait(job.waitScope);
  met.wait(job.waitScope);
  uint counted = 0;
  eachEvent(job.folder, [&](Event::Reader event) {
    if (!event.isCounted()) return;
    counted++;
    CHECK(event.getRole() == Role::SERVER);
    CHECK(event.getCounted().getEpoch() == 1);
    CHECK(event.getCounted().getPushes().getStaleness()[0] == 788);
  });
  CHECK(counted == 1);
  auto log = readWhole(job.folder.log(), TEXT_BYTES_MAX);
  CHECK(log.endsWith(" server 0: 12 of 800 pushes came late and were dropped\n"));
  // The second meeting asks no server.
  auto again = meet(first, 1, 10);
  meet(second, 1, 10).wait(job.waitScope);
  again.wait(job.waitScope);
}

TEST_CASE("Job: writes the confusion of all parts, and refuses one of other images") {
  TestJob job("confusion");
  auto server = job.join(Role::SERVER, 0);
  auto first = job.join(Role::WORKER, 0), second = job.join(Role::WORKER, 1);
  auto validate = [&](Session::Client& session, uint images, uint predicted, uint inCell) {
    auto request = session.meetRequest();
    request.setEpoch(1);
    request.setPoint(MeetingPoint::VALIDATED);
    request.initResult().setImages(images);
    auto cell = request.initConfusion(1)[0];
    cell.setLabel(3);
    cell.setPredicted(predicted);
    cell.setImages(inCell);
    return request.send();
  };
  CHECK_THROWS_WITH(validate(first, 10, 3, 9).ignoreResult().wait(job.waitScope),
      doctest::Contains("images without a cell"));
  CHECK_THROWS_WITH(validate(first, 10, 10, 10).ignoreResult().wait(job.waitScope),
      doctest::Contains("a cell of no class"));
  auto met = validate(second, 10, 3, 10);
  validate(first, 20, 3, 20).wait(job.waitScope);
  met.wait(job.waitScope);
  job.job->close();  // waits for files that are being written
  CHECK(readWhole(job.folder.confusion(), TEXT_BYTES_MAX) == "label,predicted,images\n3,3,30\n");
}

TEST_CASE("Job: gives roles without an index the lowest one that is free, in their order") {
  TestJob job("free_places", "cluster.silence_timeout_s=20");
  auto take = [&](Role role, kj::StringPtr digest) {
    auto request = job.job->bootstrap().takeIndexRequest();
    request.setRole(role);
    request.setDigest(digest);
    request.setVersion(VERSION);
    return request.send().wait(job.waitScope).getIndex();
  };
  CHECK_THROWS_WITH(take(Role::WORKER, "another digest"),
      doctest::Contains("worker was started with a different experiment file"));
  // A role that is refused takes no place.
  auto second = job.join(Role::WORKER, 1);
  CHECK(take(Role::WORKER, job.loaded.digest) == 0);
  CHECK_THROWS_WITH(take(Role::WORKER, job.loaded.digest),
      doctest::Contains("this job has 2 workers, and all places are taken"));
  CHECK(take(Role::SERVER, job.loaded.digest) == 0);
  // A role that was killed before it joined does not keep its index.
  job.pass(11 * kj::SECONDS);
  CHECK(take(Role::WORKER, job.loaded.digest) == 0);
  auto first = job.join(Role::WORKER, 0);
  CHECK_THROWS(job.join(Role::WORKER, 0));
}

TEST_CASE("Job: gives each place once, and only to roles with the same experiment file") {
  TestJob job("places");
  auto server = job.join(Role::SERVER, 0);
  CHECK_THROWS(job.join(Role::SERVER, 0));
  CHECK_THROWS(job.join(Role::SERVER, 1));
  CHECK_THROWS(job.join(Role::WORKER, 0, "another digest").wait(job.waitScope));
  auto other = job.join(Role::WORKER, 0, job.loaded.digest, "runner 0.0");
  CHECK_THROWS_WITH(other.wait(job.waitScope),
      doctest::Contains("worker 0 is a program of another version, runner 0.0, than the "));
}

TEST_CASE("Job: a silent role is lost, and a role that sends heartbeats is not") {
  TestJob job("silence");
  auto server = job.join(Role::SERVER, 0);
  auto first = job.join(Role::WORKER, 0);
  auto second = job.join(Role::WORKER, 1);
  for (int second = 0; second < 6; second++) {
    server.heartbeatRequest().send().wait(job.waitScope);
    first.heartbeatRequest().send().wait(job.waitScope);
    job.pass(1 * kj::SECONDS);
  }
  CHECK(job.failure().startsWith("worker 1 has been silent for 5 s; no step was reported yet;"));
}

TEST_CASE("Job: after the coordinator was stopped, no role counts as silent or missing") {
  TestJob job("stopped coordinator");
  auto server = job.join(Role::SERVER, 0);
  auto first = job.join(Role::WORKER, 0);
  job.pass(1 * kj::SECONDS);
  job.timer.advanceTo(job.timer.now() + 1 * kj::HOURS);
  job.pass(2 * kj::SECONDS);
  CHECK_FALSE(job.over.poll(job.waitScope));
  auto second = job.join(Role::WORKER, 1);
  job.pass(4 * kj::SECONDS);
  CHECK(job.failure().startsWith("server 0 has been silent for 5 s"));
}

TEST_CASE("Job: sends progress to the launcher long before the launcher's silence time-out") {
  TestJob job("quiet", "cluster.silence_timeout_s=1");
  auto lengthOfTold = [&]() { return readWhole(job.told(), TEXT_BYTES_MAX).size(); };
  for (uint i = 0; i < 4; i++) {
    auto before = lengthOfTold();
    job.pass(500 * kj::MILLISECONDS);
    CHECK(lengthOfTold() > before);
  }
}

// The latest progress that the launcher received.
struct Told {
  bool validating = false;
  double imagesPerS = 0;
  uint epoch = 0;
  uint64_t step = 0;
  double loss = 0;
  double accuracy = 0;
  double readShare = 0;
};
Told lastTold(TestJob& job) {
  Told told;
  auto text = readWhole(job.told(), TEXT_BYTES_MAX);
  for (kj::StringPtr rest = text; rest.size() > 0;) {
    auto end = KJ_ASSERT_NONNULL(rest.findFirst('\n'));
    capnp::MallocMessageBuilder message;
    auto event = message.initRoot<Event>();
    parseEvent(kj::heapString(rest.slice(0, end)), event);
    rest = rest.slice(end + 1);
    if (!event.isProgress()) continue;
    auto progress = event.getProgress();
    told = {progress.getValidating(), progress.getImagesPerS(), progress.getEpoch(),
        progress.getStep(), progress.getLoss(), progress.getAccuracy(), progress.getReadShare()};
  }
  return told;
}

TEST_CASE("Job: the progress takes epoch, step and figures from one event, and invents none") {
  TestJob job("progress");
  auto server = job.join(Role::SERVER, 0);
  auto first = job.join(Role::WORKER, 0), second = job.join(Role::WORKER, 1);
  job.pass(1 * kj::SECONDS);
  CHECK(std::isnan(lastTold(job).loss));
  CHECK(std::isnan(lastTold(job).accuracy));
  for (auto worker: {&first, &second}) {
    auto beat = worker->heartbeatRequest();
    beat.initProgress().setEpoch(1);
    beat.getProgress().setStep(20);
    // One waits for records, and the other does not.
    beat.getProgress().setReadS(worker == &first ? 3 : 0);
    beat.getProgress().setStepsS(5);
    beat.send().wait(job.waitScope);
    auto request = worker->reportRequest();
    auto speed = request.initEvent().initSpeed();
    speed.setEpoch(2);
    speed.setBatch(20);
    speed.setStep(50);
    speed.setLoss(0.5);
    speed.setAccuracy(0.75);
    request.send().wait(job.waitScope);
  }
  job.pass(1 * kj::SECONDS);
  auto told = lastTold(job);
  CHECK(told.epoch == 2);
  CHECK(told.step == 50);
  CHECK(told.loss == 0.5);
  CHECK(told.accuracy == 0.75);
  CHECK(told.readShare == 0.3);
}

TEST_CASE("Job: the progress shows validation, which does not change the speed of training") {
  TestJob job("validating");
  auto server = job.join(Role::SERVER, 0);
  auto first = job.join(Role::WORKER, 0), second = job.join(Role::WORKER, 1);
  uint64_t step = 0;
  auto pass = [&](uint seconds, uint stepsPerSecond) {
    for (uint i = 0; i < seconds; i++) {
      step += stepsPerSecond;
      server.heartbeatRequest().send().wait(job.waitScope);
      for (auto worker: {&first, &second}) {
        auto request = worker->heartbeatRequest();
        request.initProgress().setEpoch(1);
        request.getProgress().setStep(step);
        request.send().wait(job.waitScope);
      }
      job.pass(1 * kj::SECONDS);
    }
  };
  auto meetAll = [&](MeetingPoint point) {
    auto met = meet(first, 1, 10, point);
    meet(second, 1, 10, point).wait(job.waitScope);
    met.wait(job.waitScope);
  };
  pass(4, 10);
  auto training = lastTold(job);
  CHECK_FALSE(training.validating);
  CHECK(training.imagesPerS > 0);
  // The last steps came after the last heartbeats.
  job.pass(500 * kj::MILLISECONDS);
  for (auto worker: {&first, &second}) {
    auto request = worker->reportRequest();
    auto trained = request.initEvent().initTrained();
    trained.setEpoch(1);
    trained.setStep(step + 5);
    trained.setImages(100);
    trained.setLoss(0.5);
    trained.setAccuracy(0.75);
    request.send().wait(job.waitScope);
  }
  meetAll(MeetingPoint::TRAINED);
  // At once, not a second later.
  auto begun = lastTold(job);
  CHECK(begun.validating);
  CHECK(begun.epoch == 1);
  CHECK(begun.step == step + 5);
  CHECK(begun.loss == 0.5);
  CHECK(begun.accuracy == 0.75);
  job.pass(500 * kj::MILLISECONDS);
  pass(5, 0);
  CHECK(lastTold(job).validating);
  CHECK(lastTold(job).imagesPerS == doctest::Approx(training.imagesPerS));
  step += 5;
  meetAll(MeetingPoint::VALIDATED);
  CHECK_FALSE(lastTold(job).validating);
  pass(1, 10);
  CHECK_FALSE(lastTold(job).validating);
  CHECK(lastTold(job).imagesPerS == doctest::Approx(training.imagesPerS));
}

TEST_CASE("Job: the speed is that of training even if there is a validation every second") {
  TestJob job("short epochs");
  auto server = job.join(Role::SERVER, 0);
  auto first = job.join(Role::WORKER, 0), second = job.join(Role::WORKER, 1);
  uint epoch = 0;
  uint64_t step = 0;
  // Epochs of 20 steps, which end with 300 ms of validation.
  auto pass = [&](uint epochs, kj::Duration training) {
    for (uint i = 0; i < epochs; i++) {
      epoch++;
      step += 20;
      job.pass(training);
      server.heartbeatRequest().send().wait(job.waitScope);
      for (auto worker: {&first, &second}) {
        auto request = worker->reportRequest();
        auto trained = request.initEvent().initTrained();
        trained.setEpoch(epoch);
        trained.setStep(step);
        request.send().wait(job.waitScope);
        auto beat = worker->heartbeatRequest();
        beat.initProgress().setEpoch(epoch);
        beat.getProgress().setStep(step);
        beat.send().wait(job.waitScope);
      }
      for (auto point: {MeetingPoint::TRAINED, MeetingPoint::VALIDATED}) {
        auto met = meet(first, 1, 10, point);
        meet(second, 1, 10, point).wait(job.waitScope);
        met.wait(job.waitScope);
        if (point == MeetingPoint::TRAINED) job.pass(300 * kj::MILLISECONDS);
      }
    }
  };
  double images = 2.0 * 20 * KJ_ASSERT_NONNULL(job.loaded.experiment).data.batchSize;
  pass(20, 200 * kj::MILLISECONDS);
  CHECK(lastTold(job).imagesPerS == doctest::Approx(images / 0.2).epsilon(0.05));
  pass(80, 400 * kj::MILLISECONDS);
  CHECK(lastTold(job).imagesPerS == doctest::Approx(images / 0.4).epsilon(0.2));
}

TEST_CASE("Job: the message about a lost server names no step") {
  {
    TestJob job("silent server");
    auto server = job.join(Role::SERVER, 0);
    job.pass(6 * kj::SECONDS);
    CHECK(job.failure().startsWith("server 0 has been silent for 5 s; was it stopped, is its"));
  }
  TestJob job("server leaves");
  { auto server = job.join(Role::SERVER, 0); }
  CHECK(job.failure().startsWith("server 0 closed its connection without giving a reason"));
}

TEST_CASE("Job: a role that leaves before the end is lost") {
  TestJob job("leave");
  auto server = job.join(Role::SERVER, 0);
  { auto worker = job.join(Role::WORKER, 0); }
  CHECK(job.failure() ==
        "worker 0 closed its connection without giving a reason: it was killed or it crashed; no "
        "step was reported yet; see what it wrote last, and `dmesg` on its machine in case memory "
        "ran out");
}

TEST_CASE("Job: a worker that leaves while it waits for others is lost at once") {
  SUBCASE("at the start") {
    TestJob job("leave at the start");
    {
      auto worker = job.join(Role::WORKER, 0);
      auto start = worker.startRequest().send();
      CHECK_FALSE(start.poll(job.waitScope));
    }
    CHECK(job.failure().startsWith("worker 0 closed its connection without giving a reason"));
  }
  SUBCASE("in a meeting") {
    TestJob job("leave a meeting");
    auto server = job.join(Role::SERVER, 0);
    auto other = job.join(Role::WORKER, 1);
    {
      auto worker = job.join(Role::WORKER, 0);
      auto met = meet(worker, 1, 1);
      CHECK_FALSE(met.poll(job.waitScope));
    }
    CHECK(job.failure().startsWith("worker 0 closed its connection without giving a reason"));
  }
}

TEST_CASE("Job: fails at once if the run's folder is removed or renamed, and says so") {
  TestJob job("home");
  auto server = job.join(Role::SERVER, 0);
  job.pass(2 * kj::SECONDS);
  CHECK_FALSE(job.over.poll(job.waitScope));
  auto renameTo = [&](kj::StringPtr name) {
    auto other = kj::str(job.folder.path, name);
    REQUIRE(::rename(job.folder.path.cStr(), other.cStr()) == 0);
  };
  kj::String failure;
  SUBCASE("when it looks") {
    renameTo("-seen");
    job.pass(2 * kj::SECONDS);
    failure = job.failure();
  }
  SUBCASE("when a file that an event needs cannot be made") {
    auto worker = job.join(Role::WORKER, 0);
    renameTo("-needed");
    // Otherwise the folders for TensorBoard's files would be made anew.
    writeWhole(job.folder.path, "");
    auto report = worker.reportRequest();
    report.initEvent().initSpeed().setStep(1);
    report.send().wait(job.waitScope);
    failure = job.failure();
  }
  CHECK(failure ==
        kj::str("the folder of the run, ", job.folder.path, ", or its events.jsonl, was removed ",
            "or renamed while the run went on; start the run again, and leave its folder in ",
            "place"));
}

TEST_CASE("Job: the message about a lost worker names the newest step that it reported") {
  TestJob job("newest step");
  auto server = job.join(Role::SERVER, 0);
  {
    auto worker = job.join(Role::WORKER, 0);
    auto beat = worker.heartbeatRequest();
    beat.initProgress().setStep(214);
    beat.send().wait(job.waitScope);
    auto report = worker.reportRequest();
    report.initEvent().initSpeed().setStep(350);
    report.send().wait(job.waitScope);
  }
  CHECK(job.failure().startsWith(
      "worker 0 closed its connection without giving a reason: it was killed or it crashed; last "
      "reported step: 350; "));
}

TEST_CASE("Job: ends with the reason of a worker that reports its failure") {
  TestJob job("told");
  auto server = job.join(Role::SERVER, 0);
  auto worker = job.join(Role::WORKER, 1);
  auto request = worker.reportRequest();
  request.initEvent().initFailed().setReason("lost server 0: it could not be reached for 5 s");
  request.send().wait(job.waitScope);
  CHECK(job.failure() == "worker 1: lost server 0: it could not be reached for 5 s");
}

TEST_CASE("Job: a meeting ends when all workers are there, with the sums of all") {
  TestJob job("meeting");
  auto server = job.join(Role::SERVER, 0);
  auto first = job.join(Role::WORKER, 0);
  auto second = job.join(Role::WORKER, 1);
  auto one = meet(second, 1.5, 10);
  CHECK_FALSE(one.poll(job.waitScope));
  auto other = meet(first, 2.5, 30);
  auto answer = one.wait(job.waitScope);
  auto result = answer.getResult();
  CHECK(result.getLossSum() == 4.0);
  CHECK(result.getCorrect() == 20);
  CHECK(result.getImages() == 40);
  CHECK(other.wait(job.waitScope).getResult().getImages() == 40);
}

// Lets the workers stand still to be saved.
void standStill(TestJob& job, Session::Client& first, Session::Client& second) {
  auto one = meet(first, 0, 0, MeetingPoint::SAVED);
  CHECK_FALSE(one.poll(job.waitScope));
  auto other = meet(second, 0, 0, MeetingPoint::SAVED);
  one.wait(job.waitScope);
  other.wait(job.waitScope);
}

void sendPiece(TestJob& job, Session::Client& session, Part part, uint index, uint64_t offset) {
  auto request = session.savePartRequest();
  request.setPart(part);
  request.setIndex(index);
  request.setTotal(20);
  request.setOffset(offset);
  request.initBytes(10);
  request.send().wait(job.waitScope);
}

TEST_CASE("Job: workers that stand still to be saved go on before their parts have come") {
  TestJob job("saved");
  auto server = job.join(Role::SERVER, 0);
  auto first = job.join(Role::WORKER, 0), second = job.join(Role::WORKER, 1);
  standStill(job, first, second);
  sendPiece(job, first, Part::WORKER, 0, 0);
  sendPiece(job, server, Part::SHARD, 0, 0);
  sendPiece(job, first, Part::WORKER, 0, 10);
  CHECK_FALSE(job.over.poll(job.waitScope));
}

TEST_CASE("Job: fails if a role sends a piece of a checkpoint that does not fit") {
  {
    TestJob job("wrong_piece");
    auto server = job.join(Role::SERVER, 0);
    auto first = job.join(Role::WORKER, 0), second = job.join(Role::WORKER, 1);
    standStill(job, first, second);
    sendPiece(job, first, Part::WORKER, 0, 10);
    CHECK(job.failure().startsWith("worker 0 has sent a wrong part of a checkpoint: "));
  }
  {
    TestJob job("unasked_piece");
    auto server = job.join(Role::SERVER, 0);
    sendPiece(job, server, Part::SHARD, 0, 0);
    CHECK(job.failure().startsWith("server 0 has sent a wrong part of a checkpoint: "));
  }
}

TEST_CASE("Job: is over when every worker has finished, and tells all roles") {
  TestJob job("finish");
  auto server = job.join(Role::SERVER, 0);
  auto first = job.join(Role::WORKER, 0);
  auto second = job.join(Role::WORKER, 1);
  auto request = first.finishRequest();
  auto weights = kj::heapArray<float>(job.facts->graph.parameters);
  for (auto& weight: weights) weight = 0.5;
  // In two pieces, as those of a large network.
  auto pieces = request.initParameters(2);
  auto bytes = weights.asPtr().asConst().asBytes();
  pieces.set(0, bytes.slice(0, 40));
  pieces.set(1, bytes.slice(40, bytes.size()));
  request.send().wait(job.waitScope);
  CHECK_FALSE(job.over.poll(job.waitScope));
  second.finishRequest().send().wait(job.waitScope);
  job.over.wait(job.waitScope);
  CHECK(job.heard == 3);
  auto file = readWhole(job.folder.weights(), TEXT_BYTES_MAX);
  CHECK(file.size() > weights.size() * sizeof(float));
}

}  // namespace
}  // namespace runner

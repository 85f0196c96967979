#include "runner/roles/coordinator.h"

#include <doctest/doctest.h>
#include <stdio.h>
#include <unistd.h>

#include "runner/roles/test_job.h"

namespace runner {
namespace {

TEST_CASE("Job: refuses a role with the same settings but other images, and says so") {
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

TEST_CASE(
    "Job: roles start once the servers are ready, and learn the servers' addresses and names") {
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

TEST_CASE("Job: adds up the confusion of all workers, and refuses cells that do not fit") {
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

TEST_CASE("Job: a worker whose own work does not end is lost, but a waiting worker is not") {
  TestJob job("stall", "cluster.stall_timeout_s=3");
  auto server = job.join(Role::SERVER, 0);
  auto busy = job.join(Role::WORKER, 0), hanging = job.join(Role::WORKER, 1);
  auto beat = [&](Session::Client& worker, uint64_t work) {
    auto request = worker.heartbeatRequest();
    request.initProgress().setEpoch(1);
    request.getProgress().setStep(7);
    request.getProgress().setWork(work);
    request.send().wait(job.waitScope);
  };
  auto pass = [&](uint64_t busyWork, uint64_t hangingWork) {
    server.heartbeatRequest().send().wait(job.waitScope);
    beat(busy, busyWork);
    beat(hanging, hangingWork);
    job.pass(1 * kj::SECONDS);
  };
  // Both wait.
  for (uint i = 0; i < 10; i++) pass(2, 4);
  CHECK_FALSE(job.over.poll(job.waitScope));
  // Both are busy, and finish their pieces of work one after the other.
  for (uint i = 0; i < 10; i++) pass(3 + 2 * i, 5 + 2 * (i / 2));
  CHECK_FALSE(job.over.poll(job.waitScope));
  // Between two rare heartbeats, nobody knows whether a worker hangs.
  job.pass(4 * kj::SECONDS);
  CHECK_FALSE(job.over.poll(job.waitScope));
  for (uint i = 0; i < 5; i++) pass(101 + 2 * i, 201);
  CHECK(job.failure() ==
        "worker 1 has made no progress for 3 s, although it waits for no other role; last reported "
        "step: 7; does its GPU hang, or the file system of its images? If its steps take that "
        "long, raise cluster.stall_timeout_s");
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

TEST_CASE("Job: a worker that leaves while it waits for others is lost immediately") {
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

TEST_CASE("Job: fails immediately if the run's folder is removed or renamed, and says so") {
  TestJob job("home");
  auto server = job.join(Role::SERVER, 0);
  job.pass(2 * kj::SECONDS);
  CHECK_FALSE(job.over.poll(job.waitScope));
  auto renameTo = [&](kj::StringPtr name) {
    auto other = kj::str(job.folder.path, name);
    REQUIRE(::rename(job.folder.path.cStr(), other.cStr()) == 0);
  };
  kj::String failure;
  SUBCASE("when it checks the folder") {
    renameTo("-seen");
    job.pass(2 * kj::SECONDS);
    failure = job.failure();
  }
  SUBCASE("when a file that an event needs cannot be made") {
    auto worker = job.join(Role::WORKER, 0);
    renameTo("-needed");
    // Otherwise the folders for TensorBoard's files would be made again.
    writeWhole(job.folder.path, "");
    auto report = worker.reportRequest();
    report.initEvent().initSpeed().setStep(1);
    report.send().wait(job.waitScope);
    failure = job.failure();
  }
  CHECK(failure ==
        kj::str("the folder of the run, ", job.folder.path, ", or its events.jsonl, was removed ",
            "or renamed during the run; start the run again, and leave its folder in ", "place"));
}

TEST_CASE("Job: a start removes unfinished files of weights that killed processes have left") {
  TestJob job("leftovers");
  auto& folder = job.folder;
  kj::Vector<kj::String> left;
  for (auto& path: {folder.weights(), folder.best(), folder.averaged()}) {
    left.add(kj::str(path, ".part-1-0"));
    writeWhole(left.back(), "half of it");
  }
  auto next = kj::refcounted<Job>(
      job.loaded, *job.facts, folder, *job.log, job.timer, kj::systemPreciseCalendarClock());
  KJ_DEFER(next->close());
  auto over = next->run(false);
  for (auto& path: left) {
    CAPTURE(path.cStr());
    CHECK(::access(path.cStr(), F_OK) != 0);
  }
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

TEST_CASE("Job: a meeting ends when all workers have arrived, with the sums of all") {
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

// A coordinator's reports to its launcher about the progress of a job.
#include <doctest/doctest.h>
#include <cmath>

#include "runner/roles/test_job.h"

namespace runner {
namespace {

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
  uint stuckWorker = 0;
  uint stuck_s = 0;
};
Told lastTold(TestJob& job) {
  Told told;
  job.eachTold([&](Event::Reader event) {
    if (!event.isProgress()) return;
    auto progress = event.getProgress();
    told = {progress.getValidating(), progress.getImagesPerS(), progress.getEpoch(),
        progress.getStep(), progress.getLoss(), progress.getAccuracy(), progress.getReadShare(),
        progress.getStuckWorker(), progress.getStuckS()};
  });
  return told;
}

TEST_CASE("Job: progress has epoch, step and figures of one event, and no figures before that") {
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

TEST_CASE("Job: the progress names a stuck worker, but not one that waits for it") {
  TestJob job("stuck");
  auto server = job.join(Role::SERVER, 0);
  auto first = job.join(Role::WORKER, 0), second = job.join(Role::WORKER, 1);
  auto pass = [&](uint seconds) {
    for (uint i = 0; i < seconds; i++) {
      server.heartbeatRequest().send().wait(job.waitScope);
      for (auto worker: {&first, &second}) {
        auto beat = worker->heartbeatRequest();
        beat.initProgress().setStep(7);
        beat.getProgress().setWork(worker == &first ? 14 : 15);
        beat.send().wait(job.waitScope);
      }
      job.pass(1 * kj::SECONDS);
    }
  };
  pass(15);
  CHECK(lastTold(job).stuck_s == 0);
  pass(15);
  CHECK(lastTold(job).stuckWorker == 1);
  CHECK(lastTold(job).stuck_s >= 25);
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

TEST_CASE("Job: the progress shows no validation if there are no records to validate on") {
  TestJob job("no validation");
  job.facts->validationRecords = 0;
  auto server = job.join(Role::SERVER, 0);
  auto first = job.join(Role::WORKER, 0), second = job.join(Role::WORKER, 1);
  auto met = meet(first, 1, 10, MeetingPoint::TRAINED);
  meet(second, 1, 10, MeetingPoint::TRAINED).wait(job.waitScope);
  met.wait(job.waitScope);
  CHECK_FALSE(lastTold(job).validating);
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

}  // namespace
}  // namespace runner

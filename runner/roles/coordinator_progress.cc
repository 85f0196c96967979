// runner/roles/coordinator_progress.cc: how far a Job is, and how fast, for its launcher.
#include <capnp/message.h>
#include <math.h>

#include "runner/roles/coordinator.h"

namespace runner {

kj::Promise<void> Job::showProgress(uint64_t before) {
  // In an epoch without log lines, the launcher hears nothing else.
  auto pause = kj::min(1 * kj::SECONDS, experiment.cluster.silence() / 2);
  return timer.afterDelay(pause).then([this, before]() {
    uint64_t steps = 0;
    for (auto& seat: seats) {
      if (seat.role == Role::WORKER) steps += seat.step;
    }
    steps -= stepsSkipped;
    isInPlace();
    countTraining();
    speed.add((steps - before) * experiment.data.batchSize, trained_s);
    trained_s = 0;
    tellProgress();
    return showProgress(steps);
  });
}

void Job::countTraining() {
  auto now = timer.now();
  if (!validating) trained_s += (now - counted) / kj::NANOSECONDS * 1e-9;
  counted = now;
}

void Job::Speed::add(double newImages, double newSeconds) {
  // Before the first images, the workers prepare for an unknown time.
  if (!hasBegun) {
    hasBegun = newImages > 0;
    return;
  }
  // The speed is smoothed over about five seconds, because a step may take longer than a second.
  double kept = pow(0.8, newSeconds);
  images = images * kept + newImages;
  seconds = seconds * kept + newSeconds;
}

void Job::tellProgress() {
  nn::BatchResult sums;
  double read_s = 0, steps_s = 0;
  const Seat* slowest = nullptr;
  for (auto& seat: seats) {
    if (seat.role != Role::WORKER || !seat.isMember) continue;
    sums.add(seat.sums);
    read_s += seat.read_s;
    steps_s += seat.steps_s;
    if (slowest == nullptr || seat.step < slowest->step) slowest = &seat;
  }
  tellLauncher([&](Event::Builder event) {
    auto progress = event.initProgress();
    progress.setEpoch(slowest->epoch);
    progress.setStep(slowest->step);
    progress.setImagesPerS(speed.images_per_s());
    progress.setLoss(sums.meanLoss());
    progress.setAccuracy(sums.accuracy());
    progress.setReadShare(steps_s > 0 ? read_s / steps_s : 0);
    progress.setValidating(validating);
  });
}

}  // namespace runner

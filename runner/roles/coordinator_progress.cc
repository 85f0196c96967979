// runner/roles/coordinator_progress.cc: the progress and speed of a Job, for its launcher.
#include <capnp/message.h>

#include "runner/roles/coordinator.h"

namespace runner {

namespace {

// The progress names a worker that has been stuck for this long.
constexpr auto STUCK_FOR_MIN = 20 * kj::SECONDS;

}  // namespace

kj::Promise<void> Job::showProgress(uint64_t before) {
  // In an epoch without log lines, the launcher receives nothing else.
  auto pause = kj::min(1 * kj::SECONDS, experiment.cluster.silence() / 2);
  return timer.afterDelay(pause).then([this, before]() {
    uint64_t steps = 0;
    for (auto& seat: seats) {
      if (seat.role == Role::WORKER) steps += seat.step;
    }
    steps -= stepsSkipped;
    isInPlace();
    speed.add(timer.now(), (steps - before) * experiment.data.batchSize);
    tellProgress();
    return showProgress(steps);
  });
}

void Job::tellProgress() {
  nn::BatchResult sums;
  double read_s = 0, steps_s = 0;
  const Seat* slowest = nullptr;
  const Seat* stuck = nullptr;
  for (auto& seat: seats) {
    if (!seat.isWorkingMember()) continue;
    sums.add(seat.sums);
    read_s += seat.read_s;
    steps_s += seat.steps_s;
    if (slowest == nullptr || seat.step < slowest->step) slowest = &seat;
    bool isStuck = seat.isAtOwnWork() && seat.workFor >= STUCK_FOR_MIN;
    if (isStuck && (stuck == nullptr || seat.workFor > stuck->workFor)) stuck = &seat;
  }
  tellLauncher([&](Event::Builder event) {
    auto progress = event.initProgress();
    // A worker reports its first steps before its first epoch.
    progress.setEpoch(kj::max(1u, slowest->epoch));
    progress.setStep(slowest->step);
    progress.setImagesPerS(speed.images_per_s());
    progress.setLoss(sums.meanLoss());
    progress.setAccuracy(sums.accuracy());
    progress.setReadShare(steps_s > 0 ? read_s / steps_s : 0);
    progress.setValidating(speed.isValidating());
    if (stuck != nullptr) {
      progress.setStuckWorker(stuck->index);
      progress.setStuckS(stuck->workFor / kj::SECONDS);
    }
  });
}

}  // namespace runner

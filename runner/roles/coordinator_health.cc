// runner/roles/coordinator_health.cc: which roles of a Job are alive: heartbeats, silence, workers
// that hang, and closed connections.
#include "rpc/wire/running_time.h"
#include "runner/logs/role_names.h"
#include "runner/roles/coordinator.h"
#include "runner/system/reason.h"

namespace runner {

namespace {

// Returns the last known step of a worker, for messages. Empty for servers, which do not count
// steps.
kj::String reached(Role role, uint64_t step) {
  return role == Role::WORKER ? kj::str("; ", lastReportedStep(step)) : kj::str();
}

}  // namespace

void Job::heartbeat(Seat& seat, RoleProgress::Reader progress) {
  auto now = running.passed();
  if (progress.getWork() == seat.work) {
    // A process that was stopped meanwhile does not hang.
    seat.workFor += kj::min(now - seat.lastHeard, experiment.cluster.silence() / 2);
  } else {
    seat.work = progress.getWork();
    seat.workFor = 0 * kj::NANOSECONDS;
  }
  seat.lastHeard = now;
  seat.epoch = progress.getEpoch();
  seat.step = kj::max(seat.step, progress.getStep());
  if (seat.epoch == seat.trainedEpoch) return;
  auto result = progress.getResult();
  seat.sums = {result.getLossSum(), result.getCorrect(), result.getImages()};
  seat.read_s = progress.getReadS();
  seat.steps_s = progress.getStepsS();
}

void Job::sessionGone(Seat& seat, uint session) {
  if (over || session != seat.sessions) return;
  // A role that failed by itself would have reported the reason to the coordinator or the launcher.
  lose(seat,
      kj::str(nameOf(seat),
          " closed its connection without giving a reason: it was killed or it crashed",
          reached(seat.role, seat.step),
          "; see what it wrote last, and `dmesg` on its machine in case memory ran out"),
      kj::Exception::Type::DISCONNECTED);
}

kj::Promise<void> Job::watchRoles() {
  return timer.afterDelay(rpc::RunningTime::LOOK_INTERVAL).then([this]() {
    for (auto& seat: seats) {
      if (!seat.joined) continue;
      KJ_IF_MAYBE(why, whyLost(seat)) lose(seat, kj::mv(*why), kj::Exception::Type::FAILED);
    }
    return watchRoles();
  });
}

kj::Maybe<kj::String> Job::whyLost(const Seat& seat) {
  auto& cluster = experiment.cluster;
  auto now = running.passed();
  if (now - seat.lastHeard > cluster.silence()) {
    return kj::str(nameOfSilent(seat), " has been silent for ", cluster.silenceTimeout_s, " s",
        reached(seat.role, seat.step), "; ",
        seat.host.size() == 0 ? "" : "did its host or the network fail, ", "was it stopped, ",
        seat.role == Role::SERVER
            ? "is its machine overloaded, or does a single update take that long?"
            : "or is its machine overloaded?",
        " (cluster.silence_timeout_s)");
  }
  auto limit = cluster.stallTimeout_s;
  if (limit > 0 && seat.isAtOwnWork() && seat.workFor > limit * kj::SECONDS) {
    return kj::str(nameOf(seat), " has made no progress for ", limit,
        " s, although it waits for no other role", reached(seat.role, seat.step),
        "; does its GPU hang, or the file system of its images? If its steps take that long, raise "
        "cluster.stall_timeout_s");
  }
  return nullptr;
}

kj::String Job::nameOfSilent(const Seat& seat) {
  auto& cluster = experiment.cluster;
  if (seat.role != Role::SERVER) return nameOf(seat);
  uint first = seat.index - seat.index % cluster.serversPerProcess;
  uint count = cluster.serversOfProcess(first);
  auto now = running.passed();
  for (uint i = first; i < first + count; i++) {
    // Heartbeats come five times per time-out, and servers of one process send them at different
    // times.
    bool isSilent = now - seatOf(Role::SERVER, i).lastHeard > cluster.silence() / 2;
    if (!isSilent) return nameOf(seat);
  }
  return onHost(processName(Role::SERVER, first, count), seat.host);
}

}  // namespace runner

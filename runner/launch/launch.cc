#include "runner/launch/launch.h"

#include <capnp/message.h>

#include "runner/logs/role_names.h"
#include "runner/logs/run_log.h"
#include "runner/system/line_stream.h"
#include "runner/system/reason.h"

namespace runner {

namespace {

// If all failures so far are of roles that lost another role, the lost role gets this time to
// report its own failure.
constexpr auto CAUSE_WINDOW = 2 * kj::SECONDS;

}  // namespace

Launch::Launch(const Experiment& experiment, RunView& view, kj::Timer& timer, Start start)
    : experiment(experiment),
      view(view),
      timer(timer),
      start(kj::mv(start)),
      running(timer),
      over(nullptr),
      causeKnown(nullptr),
      tasks(kj::heap<kj::TaskSet>(static_cast<kj::TaskSet::ErrorHandler&>(*this))) {
  auto end = kj::newPromiseAndFulfiller<void>();
  over = kj::mv(end.promise);
  overFulfiller = kj::mv(end.fulfiller);
  auto cause = kj::newPromiseAndFulfiller<void>();
  causeKnown = kj::mv(cause.promise);
  causeFulfiller = kj::mv(cause.fulfiller);
}

kj::Promise<Outcome> Launch::run() {
  events = add(Role::COORDINATOR, 0, "").events();
  tasks->add(readLines(*events, [this](kj::StringPtr line) { take(line); }));
  tasks->add(watchSilence());

  return over
      .then([this]() -> kj::Promise<void> {
        if (failure == nullptr) return kj::READY_NOW;
        return causeKnown.exclusiveJoin(timer.afterDelay(CAUSE_WINDOW));
      })
      .then([this]() -> Outcome {
        view.end();
        tasks = nullptr;
        members.clear();
        KJ_IF_MAYBE(f, failure) return {.failure = kj::mv(f->reason)};
        return {.weightsSha256 = kj::mv(view.weightsSha256)};
      });
}

StartedRole& Launch::add(Role role, uint index, kj::StringPtr coordinator) {
  uint count = role == Role::SERVER ? experiment.cluster.serversOfProcess(index) : 1;
  auto& member = *members.add(kj::heap<WatchedProcess>(WatchedProcess{
      role, index, count, processName(role, index, count), start(role, index, coordinator)}));
  tasks->add(member.role->ended().then([this, &member](kj::Maybe<Failure> failed) {
    KJ_IF_MAYBE(f, failed) return fail(kj::mv(*f));
    member.hasEnded = true;
    lastHeard = running.passed();
    // The other roles are started all at once.
    if (stayed().size() == 0 && members.size() > 1) overFulfiller->fulfill();
  }));
  return *member.role;
}

kj::Vector<kj::StringPtr> Launch::stayed() {
  kj::Vector<kj::StringPtr> names;
  for (auto& member: members) {
    if (!member->hasEnded) names.add(member->name);
  }
  return names;
}

void Launch::take(kj::StringPtr line) {
  lastHeard = running.passed();
  members[0]->joined = 1;
  capnp::MallocMessageBuilder message;
  auto event = message.initRoot<Event>();
  parseEvent(line, event);
  view.show(event);
  if (event.isJoined()) {
    for (auto& member: members) {
      uint index = event.getIndex();
      bool isOne = member->kind == event.getRole() && index >= member->index &&
                   index < member->index + member->count;
      if (isOne) member->joined++;
    }
  }
  if (event.isListening()) {
    auto address = event.getListening().getAddress();
    auto& cluster = experiment.cluster;
    for (uint i = 0; i < cluster.servers; i += cluster.serversPerProcess) {
      add(Role::SERVER, i, address);
    }
    for (uint i = 0; i < cluster.workers; i++) add(Role::WORKER, i, address);
    rolesStarted = running.passed();
  }
}

void Launch::fail(Failure failed) {
  bool nearer = true;
  KJ_IF_MAYBE(known, failure) nearer = failed.rank < known->rank;
  if (failed.rank < Failure::LOST_A_PEER) causeFulfiller->fulfill();
  if (nearer) failure = kj::mv(failed);
  overFulfiller->fulfill();
}

void Launch::taskFailed(kj::Exception&& exception) {
  fail({Failure::FAILED, reasonOf(exception)});
}

kj::Promise<void> Launch::watchSilence() {
  return timer.afterDelay(rpc::RunningTime::LOOK_INTERVAL).then([this]() -> kj::Promise<void> {
    checkCoordinator();
    checkStopped();
    checkJoined();
    if (failure != nullptr) return kj::READY_NOW;
    return watchSilence();
  });
}

void Launch::checkCoordinator() {
  auto& cluster = experiment.cluster;
  auto& coordinator = *members[0];
  auto limit = coordinator.hasJoined() ? cluster.silenceTimeout_s : cluster.startTimeout_s;
  if (running.passed() - lastHeard <= limit * kj::SECONDS) return;
  if (!coordinator.hasJoined()) {
    return fail({Failure::SILENT, kj::str("the coordinator has not reported within ", limit,
                                      " s; is its machine overloaded? (cluster.start_timeout_s)")});
  }
  auto reason = coordinator.hasEnded
                    ? kj::str("the job is over, but some roles are still running after ", limit,
                          " s: ", kj::strArray(stayed(), ", "))
                    : kj::str("coordinator has been silent for ", limit, " s");
  fail({Failure::SILENT,
      kj::str(
          reason, "; was it stopped, or is its machine overloaded? (cluster.silence_timeout_s)")});
}

void Launch::checkStopped() {
  auto limit = experiment.cluster.silenceTimeout_s;
  auto now = running.passed();
  for (auto& member: members) {
    if (member->hasJoined() || member->hasEnded || !member->role->isStopped()) {
      member->stoppedSince = nullptr;
    } else KJ_IF_MAYBE(since, member->stoppedSince) {
      if (now - *since < limit * kj::SECONDS) continue;
      fail({Failure::STOPPED, kj::str(member->name,
                                  " was stopped by a signal before it joined the job, and has not "
                                  "continued for ",
                                  limit,
                                  " s; find what sent the signal, or raise "
                                  "cluster.silence_timeout_s")});
    } else {
      member->stoppedSince = now;
    }
  }
}

void Launch::checkJoined() {
  KJ_IF_MAYBE(since, rolesStarted) {
    auto limit = experiment.cluster.startTimeout_s;
    if (running.passed() - *since <= limit * kj::SECONDS) return;
    kj::Vector<kj::String> missing;
    for (auto& member: members) {
      if (!member->hasJoined()) missing.add(kj::str(member->name));
    }
    if (missing.empty()) return;
    fail({Failure::SILENT, kj::str("not joined within ", limit, " s: ", roleList(missing),
                               "; see why they did not start, or raise cluster.start_timeout_s")});
  }
}

kj::Promise<Outcome> launch(const LoadedExperiment& loaded, const RunFolder& folder, RunView& view,
    kj::AsyncIoContext& io, kj::Maybe<rpc::TraceSteps> trace) {
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  auto start = [&loaded, &folder, &view, &io, trace, secret = rpc::Secret::random()](
                   Role role, uint index, kj::StringPtr coordinator) {
    RoleOptions options{
        role, index, kj::str(coordinator), {kj::str(folder.path)}, trace, true, secret};
    return startRole(loaded, kj::mv(options), view, io);
  };
  auto launch = kj::heap<Launch>(experiment, view, io.provider->getTimer(), kj::mv(start));
  return kj::evalNow([&]() { return launch->run(); })
      .catch_([](kj::Exception&& e) { return Outcome{.failure = reasonOf(e)}; })
      .then([&experiment, &folder, &view](Outcome&& outcome) {
        KJ_IF_MAYBE(reason, outcome.failure) {
          auto& style = *experiment.log.style;
          Outcome recorded;
          auto record = [&]() { recorded = recordEnding(folder, style, Ending::FAILED, *reason); };
          KJ_IF_MAYBE(e, kj::runCatchingExceptions(record)) {
            view.say(kj::str(
                "warning: the failure is not recorded in ", folder.path, ": ", reasonOf(*e)));
          } else {
            if (recorded.failure == nullptr) {
              view.say(kj::str("warning: after the run had finished: ", *reason));
            }
            return recorded;
          }
        }
        return kj::mv(outcome);
      })
      .attach(kj::mv(launch));
}

}  // namespace runner

#include "runner/launch/launch.h"

#include <capnp/message.h>

#include "runner/logs/events.h"
#include "runner/logs/role_names.h"
#include "runner/system/line_stream.h"
#include "runner/system/reason.h"

namespace runner {

namespace {

// If all failures so far are of roles that lost another role, the lost role gets this time to
// report its own failure.
constexpr auto CAUSE_WINDOW = 2 * kj::SECONDS;
// The process of a lost worker gets this time to tell why it has ended.
constexpr auto TELLS_CAUSE_WITHIN = 200 * kj::MILLISECONDS;
// How much is shown of a line that is wrong.
constexpr size_t LINE_SHOWN_BYTES = 200;
// The others train while a worker starts in the place of a lost one. If its process ends before it
// is a member of the job, the worker is started again, at most so many times in a row.
constexpr uint TRIES = 5;

// A role that has noticed something else says so after these words.
bool saysOnlyThatCoordinatorIsGone(const Failure& failure) {
  return failure.reason.endsWith(COORDINATOR_GONE);
}

}  // namespace

Launch::Launch(const Experiment& experiment, RunView& view, kj::Timer& timer, Launcher& launcher,
    kj::Maybe<const RunFolder&> folder, uint repeatedSeats)
    : experiment(experiment),
      view(view),
      timer(timer),
      launcher(launcher),
      folder(folder),
      repeatedSeats(repeatedSeats),
      wanted(experiment.cluster.workers),
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
  tasks->add(launcher.prepare().then([this](ListenPlace place) { begin(kj::mv(place)); }));
  return over
      .then([this]() -> kj::Promise<void> {
        if (failure == nullptr) return kj::READY_NOW;
        return causeKnown.exclusiveJoin(timer.afterDelay(CAUSE_WINDOW));
      })
      .then([this]() -> Outcome {
        view.end();
        endRoles();
        KJ_IF_MAYBE(f, failure) return {.failure = kj::str(f->reason)};
        return {.weightsSha256 = kj::mv(view.weightsSha256)};
      });
}

Launch::~Launch() noexcept(false) {
  endRoles();
}

void Launch::endRoles() {
  endSaving();
  tasks = nullptr;
  // The coordinator ends first. Otherwise it would record that it loses the others, as if they had
  // failed.
  if (members.size() > 0) members[0]->process = nullptr;
  members.clear();
}

kj::Promise<void> Launch::save() {
  bool listens = members.size() > 0 && members[0]->hasJoined() && !members[0]->hasEnded;
  if (!listens || failure != nullptr || !experiment.checkpoint.isOn()) return kj::READY_NOW;
  if (!members[0]->process->requestSave()) return kj::READY_NOW;
  auto paf = kj::newPromiseAndFulfiller<void>();
  saving.add(kj::mv(paf.fulfiller));
  return paf.promise.exclusiveJoin(timer.afterDelay(SAVES_WITHIN));
}

void Launch::endSaving() {
  for (auto& fulfiller: saving) fulfiller->fulfill();
  saving.clear();
}

bool Launch::wasLost() const {
  KJ_IF_MAYBE(f, failure) {
    // A role that never joined would not join in another attempt either, unless the job has
    // trained before.
    bool hasTrained = view.reportedStep() > 0;
    bool neverCame = f->rank == Failure::ABSENT || f->rank == Failure::COMMAND_ENDED;
    return f->rank != Failure::FAILED && (!neverCame || hasTrained);
  }
  return false;
}

bool Launch::WatchedGroup::hasJoined() const {
  for (bool each: joined) {
    if (!each) return false;
  }
  return true;
}

void Launch::begin(ListenPlace place) {
  auto coordinator = launcher.startCoordinator(kj::mv(place));
  events = kj::mv(coordinator.events);
  lastHeard = running.passed();
  add({roleName(Role::COORDINATOR, 0), kj::arr(PlacedRole{Role::COORDINATOR, 0})},
      kj::mv(coordinator.process));
  tasks->add(readLines(*events, [this](kj::StringPtr line) { take(line); }));
  tasks->add(watchSilence());
}

void Launch::add(RoleGroup group, kj::Own<StartedGroup> process) {
  auto joined = kj::heapArray<bool>(group.roles.size());
  for (auto& each: joined) each = false;
  auto& member = *members.add(
      kj::heap<WatchedGroup>(WatchedGroup{kj::mv(group), kj::mv(process), kj::mv(joined)}));
  watch(member);
}

void Launch::watch(WatchedGroup& member) {
  member.started = running.passed();
  auto ended = member.process->ended().then([this, &member](kj::Maybe<Failure> failed) {
    KJ_IF_MAYBE(f, failed) {
      // A job that fails may do so because it cannot continue without this worker.
      if (failure != nullptr) return fail(kj::mv(*f));
      bool wasKilled = f->rank == Failure::KILLED || f->rank == Failure::LOST_A_PEER;
      if (wasKilled && isTriedAgain(member, f->reason)) return;
      if (!mayGoOnWithout(member, *f)) return fail(kj::mv(*f));
      if (member.leaves) return end(member);
      // The coordinator says whether the others continue. After the job has finished, the failure
      // no longer matters.
      member.failure = kj::mv(*f);
      if (member.isLost) tasks->add(kj::evalLater([this, &member]() { replaceNow(member); }));
      if (!finished) return;
    }
    end(member);
  });
  member.watching = ended.eagerlyEvaluate([this](kj::Exception&& e) { taskFailed(kj::mv(e)); });
}

void Launch::end(WatchedGroup& member) {
  member.hasEnded = true;
  lastHeard = running.passed();
  // The groups are started all at once.
  if (stayed().size() == 0 && rolesStarted != nullptr) overFulfiller->fulfill();
}

bool Launch::mayGoOnWithout(const WatchedGroup& member, const Failure& failed) const {
  auto& first = member.group.roles[0];
  return experiment.cluster.onLoss->continues && first.role == Role::WORKER && member.hasJoined() &&
         (failed.rank == Failure::KILLED || failed.rank == Failure::LOST_A_PEER);
}

bool Launch::isTriedAgain(WatchedGroup& member, kj::StringPtr reason) {
  if (!member.isExtra || member.hasJoined() || finished || member.tries >= TRIES) return false;
  view.say(kj::str(reason, ". The other workers continue"));
  tasks->add(kj::evalLater([this, &member]() { startAgain(member); }));
  return true;
}

kj::Maybe<Launch::WatchedGroup&> Launch::workerOf(uint rank) {
  for (auto& each: members) {
    auto& first = each->group.roles[0];
    if (first.role == Role::WORKER && first.index == rank) return *each;
  }
  return nullptr;
}

void Launch::replace(uint rank, bool left) {
  auto& member = KJ_ASSERT_NONNULL(workerOf(rank));
  if (member.leaves) {
    // A worker that was lost before it left may only be silent, and its process may still run.
    if (!left) takeDown(member);
    return;
  }
  // If the present process has not joined, the lost one was an earlier process of this rank, which
  // the launcher could not reach and has replaced already.
  if (!member.hasJoined()) return;
  member.isLost = true;
  if (member.failure != nullptr) return replaceNow(member);
  // The coordinator may notice the end of a process before the launcher does, but only the launcher
  // knows why it ended.
  tasks->add(timer.afterDelay(TELLS_CAUSE_WITHIN).then([this, &member]() { replaceNow(member); }));
}

void Launch::replaceNow(WatchedGroup& member) {
  if (!member.isLost || finished) return;
  if (member.tries >= TRIES) {
    auto& name = member.group.name;
    auto failed = kj::mv(member.failure).orDefault([&]() {
      return Failure{Failure::SILENT, kj::str(name, " was lost before it was a member of the job")};
    });
    failed.reason = kj::str(failed.reason, "; ", TRIES, " processes of ", name,
        " have ended in a row before they were members of the job");
    return fail(kj::mv(failed));
  }
  KJ_IF_MAYBE(f, member.failure) view.say(kj::str(f->reason, ". The other workers continue"));
  startAgain(member);
}

void Launch::startAgain(WatchedGroup& member) {
  // The old process ends here, if it is only silent.
  member.watching = nullptr;
  member.process = nullptr;
  member.process = launcher.start(member.group, address);
  member.isLost = member.leaves = member.hasEnded = false;
  member.failure = nullptr;
  member.stoppedSince = nullptr;
  member.tries++;
  member.joined[0] = false;
  member.isExtra = true;
  watch(member);
}

void Launch::startWorker(uint rank) {
  KJ_IF_MAYBE(member, workerOf(rank)) {
    startAgain(*member);
    // The process before it left because it was asked to, so this start is not another try.
    member->tries = 0;
    return;
  }
  RoleGroup group{roleName(Role::WORKER, rank), kj::arr(PlacedRole{Role::WORKER, rank})};
  auto process = launcher.start(group, address);
  add(kj::mv(group), kj::mv(process));
}

bool Launch::scales() const {
  auto& cluster = experiment.cluster;
  return cluster.onLoss->continues && cluster.launcher->word == LauncherKind::LOCAL;
}

void Launch::adjustWorkers() {
  auto& cluster = experiment.cluster;
  bool isOver = finished || failure != nullptr;
  if (!scales() || folder == nullptr || !allHaveJoined || isOver) return;
  if (repeatedSeats > 0) {
    wanted = repeatedSeats;
  } else KJ_IF_MAYBE(count, wantedWorkers(KJ_ASSERT_NONNULL(folder))) {
    wanted = kj::max(cluster.elastic.min, kj::min(cluster.elastic.max, *count));
  }
  auto stays = [&](uint rank) {
    KJ_IF_MAYBE(member, workerOf(rank)) return !member->hasEnded && !member->leaves;
    return false;
  };
  uint present = 0;
  for (uint rank = 0; rank < cluster.seats(); rank++) present += stays(rank) ? 1 : 0;
  for (uint rank = 0; rank < cluster.seats() && present < wanted; rank++) {
    // A rank is free when its process has ended.
    bool isFree = workerOf(rank).map([](auto& member) { return member.hasEnded; }).orDefault(true);
    if (!isFree) continue;
    startWorker(rank);
    KJ_ASSERT_NONNULL(workerOf(rank)).isExtra = true;
    present++;
  }
  for (uint rank = cluster.seats(); rank-- > 0 && present > wanted;) {
    if (!stays(rank)) continue;
    auto& member = KJ_ASSERT_NONNULL(workerOf(rank));
    present--;
    // A worker that is about to join is asked to leave once it has joined.
    if (!member.hasJoined() || member.isLost) continue;
    member.leaves = true;
    member.process->requestLeave();
  }
}

// A worker that was about to take the place of a lost one is not needed any more.
void Launch::takeFinished() {
  finished = true;
  for (auto& member: members) {
    bool isThere = member->hasJoined() && member->failure == nullptr && !member->isLost;
    if (!member->hasEnded && !isThere) takeDown(*member);
  }
}

void Launch::takeDown(WatchedGroup& member) {
  member.watching = nullptr;
  member.process = nullptr;
  // The others have gone on without it, so later failures have another cause.
  member.failure = nullptr;
  end(member);
}

kj::Vector<kj::StringPtr> Launch::stayed() {
  kj::Vector<kj::StringPtr> names;
  for (auto& member: members) {
    if (!member->hasEnded) names.add(member->group.name);
  }
  return names;
}

void Launch::take(kj::StringPtr line) {
  lastHeard = running.passed();
  members[0]->joined[0] = true;
  capnp::MallocMessageBuilder message;
  auto event = message.initRoot<Event>();
  // The parser's own message is about its code. It would not help the user.
  if (kj::runCatchingExceptions([&]() { parseEvent(line, event); }) != nullptr) {
    return fail({Failure::FAILED, kj::str("the coordinator has sent a line that is not an event: ",
                                      line.slice(0, kj::min(line.size(), LINE_SHOWN_BYTES)))});
  }
  view.show(event);
  if (runner::endsSaving(event)) endSaving();
  if (event.isJoined()) noteJoined(event.getRole(), event.getIndex());
  if (event.isFinished()) takeFinished();
  if (event.isMembership()) {
    auto membership = event.getMembership();
    if (membership.getJoined()) {
      KJ_IF_MAYBE(member, workerOf(event.getIndex())) member->tries = 0;
    } else {
      replace(event.getIndex(), membership.getLeft());
    }
  }
  if (event.isLostNewcomer()) replace(event.getIndex(), false);
  if (event.isWaiting()) refused = kj::str(event.getWaiting().getRefused());
  if (event.isListening()) startRoles(event.getListening());
}

void Launch::noteJoined(Role role, uint index) {
  bool hasAll = true;
  for (auto& member: members) {
    auto& roles = member->group.roles;
    for (size_t i: kj::indices(roles)) {
      if (roles[i].role == role && roles[i].index == index) member->joined[i] = true;
    }
    hasAll = hasAll && member->hasJoined();
  }
  if (hasAll && rolesStarted != nullptr) {
    launcher.allJoined();
    allHaveJoined = true;
  }
}

void Launch::startRoles(Event::Listening::Reader listening) {
  address = kj::str(listening.getAddress());
  auto ranks = listening.getWorkers();
  // The job waits for the workers that it had, whatever the file says.
  bool namesWorkers = scales() && ranks.size() > 0;
  auto isWaitedFor = [&](const PlacedRole& role) {
    if (!namesWorkers || role.role != Role::WORKER) return true;
    bool isNamed = false;
    for (uint rank: ranks) isNamed = isNamed || rank == role.index;
    return isNamed;
  };
  for (auto& group: launcher.groups()) {
    if (!isWaitedFor(group.roles[0])) continue;
    auto process = launcher.start(group, address);
    add(kj::mv(group), kj::mv(process));
  }
  for (uint rank: ranks) {
    if (namesWorkers && workerOf(rank) == nullptr) startWorker(rank);
  }
  rolesStarted = running.passed();
}

void Launch::fail(Failure failed) {
  // A worker that was lost may be why the coordinator has failed.
  for (auto& member: members) {
    KJ_IF_MAYBE(before, member->failure) {
      bool isNearer = before->rank < failed.rank;
      if (isNearer) failed = {before->rank, kj::str(before->reason)};
    }
  }
  bool nearer = true;
  KJ_IF_MAYBE(known, failure) {
    bool knowsMore =
        saysOnlyThatCoordinatorIsGone(*known) && !saysOnlyThatCoordinatorIsGone(failed);
    nearer = failed.rank < known->rank || (failed.rank == known->rank && knowsMore);
  }
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
    adjustWorkers();
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
    return fail({Failure::ABSENT, kj::str("the coordinator has not reported within ", limit,
                                      " s; is its machine overloaded? (cluster.start_timeout_s)")});
  }
  auto reason =
      coordinator.hasEnded
          ? kj::str("the job is over, but some roles are still running after ", limit,
                " s: ", kj::strArray(stayed(), ", "), "; were they stopped, or is a machine")
          : kj::str("the coordinator has been silent for ", limit,
                " s; was it stopped, or is its machine");
  fail({Failure::SILENT, kj::str(reason, " overloaded? (cluster.silence_timeout_s)")});
}

void Launch::checkStopped() {
  auto limit = experiment.cluster.silenceTimeout_s;
  auto now = running.passed();
  for (auto& member: members) {
    if (member->hasJoined() || member->hasEnded || !member->process->isStopped()) {
      member->stoppedSince = nullptr;
    } else KJ_IF_MAYBE(since, member->stoppedSince) {
      if (now - *since < limit * kj::SECONDS) continue;
      auto reason = kj::str(member->group.name,
          " was stopped by a signal before it joined the job, and has not continued for ", limit,
          " s; find what sent the signal, or raise cluster.silence_timeout_s");
      if (!isTriedAgain(*member, reason)) fail({Failure::STOPPED, kj::mv(reason)});
    } else {
      member->stoppedSince = now;
    }
  }
}

void Launch::checkJoined() {
  KJ_IF_MAYBE(since, rolesStarted) {
    auto limit = experiment.cluster.startTimeout_s;
    auto reasonFor = [&](kj::ArrayPtr<const kj::String> missing) {
      return kj::str("not joined within ", limit, " s: ", roleList(missing), inParentheses(refused),
          "; see why they did not start, or raise cluster.start_timeout_s");
    };
    kj::Vector<kj::String> missing;
    for (auto& member: members) {
      if (running.passed() - kj::max(*since, member->started) <= limit * kj::SECONDS) continue;
      kj::Vector<kj::String> names;
      auto& roles = member->group.roles;
      for (size_t i: kj::indices(roles)) {
        if (!member->joined[i]) names.add(roles[i].name());
      }
      if (names.empty() || isTriedAgain(*member, reasonFor(names))) continue;
      for (auto& name: names) missing.add(kj::mv(name));
    }
    if (!missing.empty()) fail({Failure::ABSENT, reasonFor(missing)});
  }
}

}  // namespace runner

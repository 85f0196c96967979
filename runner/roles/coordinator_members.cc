// runner/roles/coordinator_members.cc: a Job continues without lost workers, and takes new ones.
#include <capnp/membrane.h>
#include <capnp/message.h>
#include <kj/debug.h>

#include <algorithm>

#include "io/records/mapped_file.h"
#include "runner/experiment/run_length.h"
#include "runner/logs/role_names.h"
#include "runner/roles/coordinator.h"
#include "runner/roles/lost_role.h"
#include "runner/roles/part_transfer.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

// The pause between two requests to stop the workers while a worker waits to become a member.
constexpr auto ADMITS_AGAIN = 100 * kj::MILLISECONDS;

// Makes the calls of a capability fail from a certain moment on.
class Revocable final: public capnp::MembranePolicy, public kj::Refcounted {
public:
  explicit Revocable(kj::Promise<void> revoked): revoked(revoked.fork()) {}

  kj::Maybe<capnp::Capability::Client> inboundCall(
      uint64_t, uint16_t, capnp::Capability::Client) override {
    return nullptr;
  }
  kj::Maybe<capnp::Capability::Client> outboundCall(
      uint64_t, uint16_t, capnp::Capability::Client) override {
    return nullptr;
  }
  kj::Own<capnp::MembranePolicy> addRef() override { return kj::addRef(*this); }
  kj::Maybe<kj::Promise<void>> onRevoked() override { return revoked.addBranch(); }

private:
  kj::ForkedPromise<void> revoked;
};

// The servers' answers when a worker is fenced.
struct FencedRuns: public kj::Refcounted {
  kj::Vector<capnp::Response<Member::FenceWorkerResults>> answers;
};

}  // namespace

void Job::setMember(Seat& seat, Member::Client member) {
  auto paf = kj::newPromiseAndFulfiller<void>();
  seat.revoke = kj::mv(paf.fulfiller);
  seat.member = capnp::membrane(kj::mv(member), kj::refcounted<Revocable>(kj::mv(paf.promise)));
}

bool Job::hadBegunBefore(const Seat& lost) const {
  // Training begins when all roles have joined. A worker may report a step before that.
  for (auto& seat: seats) {
    bool trains = seat.role == Role::SERVER || (seat.isWorkingMember() && &seat != &lost);
    if (trains && seat.member == nullptr) return false;
  }
  uint64_t begin = 0;
  KJ_IF_MAYBE(checkpoint, from) begin = checkpoint->point.step;
  KJ_IF_MAYBE(known, plan) {
    // The worker counts as lost when all pushes of earlier steps are answered.
    if (known->lossOf(lost.index, begin + 1) != nullptr) return true;
  }
  for (auto& seat: seats) {
    if (seat.isWorkingMember() && seat.step <= begin) return false;
  }
  return true;
}

kj::Maybe<kj::String> Job::whyNotWithout(const Seat& seat) const {
  auto& cluster = experiment.cluster;
  if (!cluster.onLoss->continues) return kj::String();
  if (seat.role != Role::WORKER) {
    return kj::str("; a job can continue only if the lost role is a worker (cluster.on_loss)");
  }
  if (!hadBegunBefore(seat)) return kj::str("; the others had not begun to train");
  uint left = members.count();
  for (auto& each: seats) {
    bool isLeaving = each.role == Role::WORKER && members.has(each.index) && !each.isMember;
    left -= isLeaving ? 1 : 0;
  }
  left--;
  if (left >= cluster.elastic.min && left > 0) return nullptr;
  return kj::str("; that leaves ", runner::counted(left, "worker"), ", and the job needs ",
      cluster.elastic.min, " (cluster.elastic.min)");
}

void Job::lose(Seat& seat, kj::String reason, kj::Exception::Type type, bool left) {
  if (over) return;
  auto failWith = [&](kj::StringPtr why) {
    lostRole = lostRole || type != kj::Exception::Type::DISCONNECTED;
    fail(kj::str(reason, why), type);
  };
  if (seat.isMember) {
    KJ_IF_MAYBE(why, whyNotWithout(seat)) return failWith(*why);
  }
  bool wasMember = seat.isMember;
  seat.isMember = false;
  seat.joined = false;
  seat.sessions++;
  seat.member = nullptr;
  for (auto waiting: {&seat.entering, &seat.revoke}) {
    KJ_IF_MAYBE(fulfiller, *waiting) {
      (*fulfiller)->reject(KJ_EXCEPTION(DISCONNECTED, "the job continues without this worker"));
    }
    *waiting = nullptr;
  }
  if (!wasMember) {
    return tellLauncher([&](Event::Builder event) {
      event.setRole(seat.role);
      event.setIndex(seat.index);
      event.setLostNewcomer();
    });
  }
  uint epoch = epochsTrained + 1;
  change([this, rank = seat.index, epoch, left]() { return goOnWithout(rank, epoch, left); });
  removeNewcomer(seat.index);
  if (saver.abandon(seat.index) && newcomers.size() > 0 && donated.size() == 0) {
    return failWith(kj::str("; ", roleName(Role::WORKER, newcomers[0]),
        " was joining and had not received its first state"));
  }
  if (meeting.leave(seat.index)) closeMeeting();
}

kj::Promise<void> Job::leave(Seat& seat) {
  KJ_REQUIRE(seat.isWorkingMember(), "only a member can leave, and only once");
  // The others may have made their first step without having reported it yet.
  if (!hadBegunBefore(seat)) {
    return timer.afterDelay(ADMITS_AGAIN).then([this, &seat]() -> kj::Promise<void> {
      if (over || !seat.isMember) return kj::NEVER_DONE;
      return leave(seat);
    });
  }
  lose(seat, kj::str(nameOf(seat), " received SIGTERM"), kj::Exception::Type::DISCONNECTED, true);
  return changing.addBranch();
}

kj::Promise<void> Job::whenSettled(kj::Function<kj::Promise<void>()> act) {
  // Nothing else may happen between this check and the call of `act`.
  if (changesPending == 0) return act();
  return changing.addBranch().then(
      [this, act = kj::mv(act)]() mutable { return whenSettled(kj::mv(act)); });
}

kj::Promise<void> Job::change(kj::Function<kj::Promise<void>()> change) {
  changesPending++;
  changing = changing.addBranch()
                 .then([this, change = kj::mv(change)]() mutable -> kj::Promise<void> {
                   if (over) return kj::NEVER_DONE;
                   return change();
                 })
                 .then([this]() {
                   changesPending--;
                   return endIfFinished();
                 })
                 .fork();
  tasks->add(changing.addBranch());
  return changing.addBranch();
}

kj::Promise<void> Job::tellServers(kj::Function<kj::Promise<void>(Member::Client&)> call) {
  kj::Vector<kj::Promise<void>> calls;
  for (auto& seat: seats) {
    if (seat.role == Role::SERVER) calls.add(call(KJ_ASSERT_NONNULL(seat.member)));
  }
  return neverIfLost(kj::joinPromises(calls.releaseAsArray()));
}

kj::Promise<void> Job::tellMembers() {
  auto changes = members.changes();
  kj::Vector<kj::Promise<void>> calls;
  for (auto& seat: seats) {
    if (!seat.isWorkingMember() || isNewcomer(seat.index)) continue;
    auto request = KJ_ASSERT_NONNULL(seat.member).setMembersRequest();
    setChanges(request.initChanges(changes.size()), changes);
    calls.add(evenIfLost(request.send().ignoreResult()));
  }
  return kj::joinPromises(calls.releaseAsArray());
}

uint64_t Job::endOf(uint epoch) const {
  auto division = divisionOf(experiment, facts.passLength, members.changes());
  return facts.stepsUntilEndOf(epoch, experiment, division);
}

// A worker ends a step only when every slice was answered. The servers close no round without the
// lost worker's push before they get leaveWorker(), which comes last. So all other workers know of
// the change before any of them ends that step. In modes where each push is a round, they know of
// it before they end the epoch: see MeetingPoint.stepped.
kj::Promise<void> Job::goOnWithout(uint rank, uint epoch, bool left) {
  auto runs = kj::refcounted<FencedRuns>();
  return tellServers([rank, &runs = *runs](Member::Client& server) {
    auto request = server.fenceWorkerRequest();
    request.setRank(rank);
    return request.send().then([&runs](capnp::Response<Member::FenceWorkerResults>&& response) {
      runs.answers.add(kj::mv(response));
    });
  })
      .then([this, rank, epoch, left, runs = kj::mv(runs)]() {
        kj::Vector<SliceRun::Reader> all;
        for (auto& answer: runs->answers) {
          for (auto run: answer.getPushed()) all.add(run);
        }
        auto last = lastPushesOf(all, placementOf(experiment, graph).slices.size());
        io::MemberChange change{
            .rank = rank, .joins = false, .step = last.step, .counts = last.held.size() > 0};
        // In modes where nobody waits for the lost worker's pushes, the others may be at any step
        // of this epoch.
        uint lostIn = experiment.changesAtEpochEnds() ? epochsStepped + 1 : epoch;
        if (experiment.changesAtEpochEnds()) change.from = endOf(lostIn);
        members.add(change);
        reportChange(change, lostIn, last.held, left);
        return tellMembers();
      })
      .then([this, rank]() { return tellServersToLeave(rank); });
}

kj::Promise<void> Job::tellServersToLeave(uint rank) {
  return tellServers([rank](Member::Client& server) {
    auto request = server.leaveWorkerRequest();
    request.setRank(rank);
    return request.send().ignoreResult();
  });
}

kj::Promise<void> Job::leaveOutsiders() {
  kj::Promise<void> told = kj::READY_NOW;
  for (auto& seat: seats) {
    if (seat.role != Role::WORKER || seat.isMember) continue;
    told = told.then([this, rank = seat.index]() { return tellServersToLeave(rank); });
  }
  return told;
}

kj::Promise<void> Job::enter(Seat& seat) {
  KJ_REQUIRE(seat.role == Role::WORKER && !seat.isMember, "only a worker can enter, and only once");
  auto paf = kj::newPromiseAndFulfiller<void>();
  seat.entering = kj::mv(paf.fulfiller);
  if (plan == nullptr) tasks->add(admitSoon());
  return kj::mv(paf.promise);
}

kj::Promise<void> Job::admitSoon() {
  bool waits = false;
  for (auto& seat: seats) waits = waits || (seat.entering != nullptr && !seat.isMember);
  if (!waits || over || finished > 0) return kj::READY_NOW;
  if (experiment.changesAtEpochEnds()) {
    saver.stopAtNextEpoch();
    return timer.afterDelay(ADMITS_AGAIN).then([this]() { return admitSoon(); });
  }
  return askToSave().then([this](bool) { return timer.afterDelay(ADMITS_AGAIN); }).then([this]() {
    return admitSoon();
  });
}

kj::Promise<void> Job::admitWaiting(uint64_t step) {
  KJ_IF_MAYBE(known, plan) {
    if (isSettledAt(step)) {
      // The workers wait for the ranks that joined the other run at this step, and for no other
      // rank.
      auto joining = known->joiningAt(step);
      if (joining.size() == 0) return kj::READY_NOW;
      for (uint rank: joining) {
        if (members.has(rank)) continue;
        if (seatOf(Role::WORKER, rank).entering != nullptr) continue;
        if (waitsToJoin == nullptr) waitsToJoin = running.passed();
        auto limit = experiment.cluster.startTimeout_s;
        if (running.passed() - KJ_ASSERT_NONNULL(waitsToJoin) > limit * kj::SECONDS) {
          fail(kj::str(roleName(Role::WORKER, rank), " has not joined within ", limit,
              " s at step ", step, ", as it did in the run that --membership names; see why it ",
              "did not start, or raise cluster.start_timeout_s"));
          return kj::NEVER_DONE;
        }
        return timer.afterDelay(ADMITS_AGAIN / 10).then([this, step]() {
          return admitWaiting(step);
        });
      }
      waitsToJoin = nullptr;
    }
  }
  // A worker that is lost meanwhile is fenced after it was admitted.
  return change([this, step]() { return admit(step); });
}

// Nobody joins while the workers have agreed to stop at a later step: a newcomer would not stop
// there. Nobody joins before the last change has taken effect. And a newcomer begins with the state
// that the first member has saved. If a worker was lost meanwhile, the checkpoint was given up.
bool Job::isSettledAt(uint64_t step) const {
  return newcomers.size() == 0 && !saver.hasAsked() && members.settledAt() <= step &&
         saver.gathers(step);
}

kj::Promise<void> Job::admit(uint64_t step) {
  if (!isSettledAt(step)) return kj::READY_NOW;
  kj::Maybe<uint> first;
  for (auto& seat: seats) {
    if (seat.role != Role::WORKER) continue;
    if (seat.isMember && first == nullptr) first = seat.index;
    bool waits = seat.entering != nullptr && !members.has(seat.index);
    KJ_IF_MAYBE(known, plan) {
      auto joining = known->joiningAt(step);
      waits = waits && std::find(joining.begin(), joining.end(), seat.index) != joining.end();
    }
    if (waits && members.count() + newcomers.size() < experiment.cluster.seats()) {
      newcomers.add(seat.index);
    }
  }
  if (newcomers.size() == 0) return kj::READY_NOW;
  donor = KJ_ASSERT_NONNULL(first);
  kj::Promise<void> told = kj::READY_NOW;
  for (uint rank: newcomers) {
    auto& seat = seatOf(Role::WORKER, rank);
    stepsSkipped += step - seat.step;
    seat.isMember = true;
    seat.finished = false;
    seat.step = step;
    seat.epoch = epochsTrained + 1;
    seat.sums = {};
    meeting.enter(rank);
    io::MemberChange change{.rank = rank, .joins = true, .step = step};
    members.add(change);
    reportChange(change, epochsTrained + 1);
    told = told.then([this, rank, step]() {
      return tellServers([rank, step](Member::Client& server) {
        auto request = server.admitWorkerRequest();
        request.setRank(rank);
        request.setStep(step);
        return request.send().ignoreResult();
      });
    });
  }
  return told.then([this]() { return tellMembers(); });
}

bool Job::isNewcomer(uint rank) const {
  return std::find(newcomers.begin(), newcomers.end(), rank) != newcomers.end();
}

void Job::removeNewcomer(uint rank) {
  auto end = std::remove(newcomers.begin(), newcomers.end(), rank);
  newcomers.truncate(end - newcomers.begin());
  // The next newcomer begins with the state of a later checkpoint.
  if (newcomers.size() == 0) donated = nullptr;
}

void Job::serveNewcomers() {
  if (newcomers.size() == 0 || donated.size() > 0) return;
  KJ_IF_MAYBE(part, saver.partOf(donor)) {
    donated = kj::heapArray(*part);
    for (uint rank: newcomers) {
      auto& seat = seatOf(Role::WORKER, rank);
      KJ_IF_MAYBE(entering, seat.entering) (*entering)->fulfill();
      seat.entering = nullptr;
    }
  }
}

void Job::readSaved(
    Seat& seat, PartName name, uint64_t offset, Session::SavedPartResults::Builder results) {
  if (seat.role == Role::WORKER && isNewcomer(seat.index)) {
    auto whole = donated.asPtr().asConst();
    if (copyPiece(kj::arrayPtr(&whole, 1), offset, results)) removeNewcomer(seat.index);
    return;
  }
  auto& checkpoint = KJ_REQUIRE_NONNULL(from, "this run does not continue from a checkpoint");
  if (name.kind != Part::SHARD) return readPiece(checkpoint.file(name.file()), offset, results);
  auto& shard = restoring.findOrCreate(name.index, [&]() {
    return decltype(restoring)::Entry{name.index, openShard(checkpoint, name)};
  });
  if (copyPiece(shard.part.pieces, offset, results)) restoring.erase(name.index);
}

Job::SavedShard Job::openShard(const FoundCheckpoint& checkpoint, PartName name) const {
  auto placement = placementOf(experiment, graph);
  KJ_REQUIRE(name.index < placement.shards.size(), "there is no such shard", name.index);
  auto mapped = [](kj::StringPtr path) {
    return io::mapFile(path, kj::str(path, " can no longer be read"));
  };
  auto file = mapped(checkpoint.file(name.file()));
  auto weights = mapped(checkpoint.file(CHECKPOINT_WEIGHTS));
  auto part = wholeShard(file, weights, placement, name.index);
  return {kj::mv(file), kj::mv(weights), kj::mv(part)};
}

void Job::reportChange(
    const io::MemberChange& change, uint epoch, kj::ArrayPtr<const rpc::SliceId> held, bool left) {
  record([&](Event::Builder event) {
    event.setRole(Role::WORKER);
    event.setIndex(change.rank);
    auto membership = event.initMembership();
    setChange(membership, change, held);
    membership.setEpoch(epoch);
    membership.setWorkers(members.count());
    membership.setLeft(left);
  });
}

}  // namespace runner

// runner/roles/coordinator_service.cc: the capabilities through which roles call a Job.
#include <kj/debug.h>

#include "configs/language/failure.h"
#include "runner/experiment/differences.h"
#include "runner/logs/role_names.h"
#include "runner/roles/confusion_message.h"
#include "runner/roles/coordinator.h"
#include "runner/roles/part_transfer.h"
#include "runner/system/machine.h"
#include "runner/system/version.h"

namespace runner {

namespace {

kj::ArrayPtr<const float> floats(capnp::Data::Reader data) {
  KJ_REQUIRE(data.size() % sizeof(float) == 0, "not an array of float32", data.size());
  return kj::arrayPtr(reinterpret_cast<const float*>(data.begin()), data.size() / sizeof(float));
}

}  // namespace

// One role's seat, as the role sees it. It is dropped when the connection ends.
class SessionServer final: public Session::Server {
public:
  SessionServer(kj::Own<Job> job, Job::Seat& seat)
      : job(kj::mv(job)), seat(seat), number(++seat.sessions) {}
  ~SessionServer() noexcept(false) { job->sessionGone(seat, number); }

  kj::Promise<void> start(StartContext context) override {
    // Otherwise the session of a role that has ended would wait here, and nobody would notice the
    // loss.
    context.allowCancellation();
    requireSeat();
    return job->whenStarted(seat).then([this, context]() mutable {
      auto& experiment = job->experiment;
      auto changes = job->members.changes();
      setChanges(context.getResults().initChanges(changes.size()), changes);
      if (!experiment.kvstore.exchanges()) return;
      auto shards = context.getResults().initShards(experiment.shards());
      auto names = context.getResults().initNames(shards.size());
      for (uint i = 0; i < shards.size(); i++) {
        auto& holder = job->seatOf(job->shardHolder(), i);
        shards[i].setTcp(holder.address.tcp);
        shards[i].setLocal(holder.address.local);
        names.set(i, job->nameOf(holder));
      }
    });
  }

  kj::Promise<void> heartbeat(HeartbeatContext context) override {
    requireSeat();
    job->heartbeat(seat, context.getParams().getProgress());
    auto now = kj::systemPreciseMonotonicClock().now() - kj::origin<kj::TimePoint>();
    context.getResults().setClockNs(now / kj::NANOSECONDS);
    context.getResults().setMissing(job->missing());
    return kj::READY_NOW;
  }

  kj::Promise<void> report(ReportContext context) override {
    requireSeat();
    auto params = context.getParams();
    job->report(seat, params.getEvent(), params.getLostPeer());
    return kj::READY_NOW;
  }

  kj::Promise<void> meet(MeetContext context) override {
    requireSeat();
    auto params = context.getParams();
    auto result = params.getResult();
    Contribution contribution{
        {result.getLossSum(), result.getCorrect(), result.getImages(), result.getInTopK()},
        kj::heapArray<float>(floats(params.getStatistics()))};
    uint64_t images = kj::min(result.getImages(), job->facts.validationRecords);
    contribution.confusion = cellsOf(params.getConfusion(), job->graph.classes, images);
    auto met = job->meet(
        seat, params.getEpoch(), params.getStep(), params.getPoint(), kj::mv(contribution));
    context.releaseParams();
    context.allowCancellation();
    return met.then([this, context]() mutable {
      auto outcome = job->meeting.outcomeOf(seat.index);
      auto results = context.getResults();
      auto result = results.initResult();
      result.setLossSum(outcome.sums.lossSum);
      result.setCorrect(outcome.sums.correct);
      result.setImages(outcome.sums.images);
      result.setInTopK(outcome.sums.inTopK);
      results.setStatistics(outcome.statistics.asPtr().asBytes());
      results.setStopNext(outcome.stopsNext);
      results.setPart(outcome.part);
      results.setParts(outcome.parts);
      results.setAgain(outcome.again);
    });
  }

  kj::Promise<void> finish(FinishContext context) override {
    requireSeat();
    auto params = context.getParams();
    size_t size = 0;
    for (auto piece: params.getParameters()) size += floats(piece).size();
    kj::Vector<float> parameters(size);
    for (auto piece: params.getParameters()) parameters.addAll(floats(piece));
    job->finish(seat, parameters.releaseAsArray(), floats(params.getStatistics()));
    return kj::READY_NOW;
  }

  kj::Promise<void> instructionSet(InstructionSetContext context) override {
    context.allowCancellation();
    requireSeat();
    return job->instructionSet().then(
        [context](kj::StringPtr level) mutable { context.getResults().setLevel(level); });
  }

  kj::Promise<void> savePart(SavePartContext context) override {
    requireSeat();
    job->take(seat, context.getParams());
    return kj::READY_NOW;
  }

  kj::Promise<void> savedPart(SavedPartContext context) override {
    requireSeat();
    auto params = context.getParams();
    PartName name{params.getPart(), params.getIndex()};
    job->readSaved(seat, name, params.getOffset(), context.getResults());
    return kj::READY_NOW;
  }

  kj::Promise<void> enter(EnterContext context) override {
    context.allowCancellation();
    requireSeat();
    return job->enter(seat);
  }

  kj::Promise<void> leave(LeaveContext context) override {
    context.allowCancellation();
    requireSeat();
    return job->leave(seat);
  }

private:
  // A role that wakes up after the job has continued without it is refused.
  void requireSeat() const {
    job->requireOpen();
    if (number == seat.sessions) return;
    kj::throwFatalException(KJ_EXCEPTION(DISCONNECTED,
        kj::str("the job continues without ", job->nameOf(seat), ", because it was lost")));
  }

  kj::Own<Job> job;
  Job::Seat& seat;
  const uint number;
};

class CoordinatorServer final: public Coordinator::Server {
public:
  explicit CoordinatorServer(kj::Own<Job> job): job(kj::mv(job)) {}

  kj::Promise<void> join(JoinContext context) override {
    job->requireOpen();
    auto params = context.getParams();
    auto& seat = job->seatOf(params.getRole(), params.getIndex());
    auto host = params.getHost() == thisHostName() ? kj::str() : kj::str(params.getHost());
    auto name = onHost(roleName(seat.role, seat.index), host);
    auto join = [&]() {
      checkProgram(name, params);
      job->join(seat, params, kj::mv(host));
    };
    KJ_IF_MAYBE(why, kj::runCatchingExceptions(join)) {
      // The role says so only on its own terminal, which the user of this terminal may not see.
      seat.refusal = kj::str(why->getDescription());
      kj::throwFatalException(kj::mv(*why));
    }
    context.getResults().setSession(kj::heap<SessionServer>(kj::addRef(*job), seat));
    context.getResults().setBoot(thisBoot());
    context.getResults().setJob(job->id);
    context.getResults().setContinues(job->from != nullptr);
    context.getResults().setEnters(!seat.isMember);
    return kj::READY_NOW;
  }

  kj::Promise<void> takeIndex(TakeIndexContext context) override {
    job->requireOpen();
    auto params = context.getParams();
    checkProgram(roleWord(params.getRole()), params);
    context.getResults().setIndex(job->takeIndex(params.getRole()));
    return kj::READY_NOW;
  }

private:
  // `params` are those of join() or takeIndex().
  template <typename Params>
  void checkProgram(kj::StringPtr name, Params params) {
    kj::StringPtr version = params.getVersion();
    if (version != VERSION) {
      configs::fail(name, " runs another version of the program (", version,
          ") than the coordinator (", VERSION, "): install the same version on every host");
    }
    if (params.getDigest() == job->loaded.digest) return;
    if (params.getSettings() == job->loaded.settings) {
      configs::fail(name, " has other images than the coordinator: give all hosts the same data ",
          "set, and remove the copy in the cache of a host whose data set has changed");
    }
    auto differences = firstDifferences(params.getSettings(), job->loaded.settings);
    configs::fail(name, " was started with a different experiment file than the coordinator",
        inParentheses(differences), ": start all roles with the same file and the same --set");
  }

  kj::Own<Job> job;
};

Coordinator::Client Job::bootstrap() {
  return kj::heap<CoordinatorServer>(kj::addRef(*this));
}

}  // namespace runner

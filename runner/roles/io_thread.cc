#include "runner/roles/io_thread.h"

#include <kj/debug.h>

#include "runner/logs/role_names.h"
#include "runner/roles/confusion_message.h"
#include "runner/roles/job_members.h"
#include "runner/roles/lost_role.h"
#include "runner/roles/part_transfer.h"
#include "runner/roles/shard_saver.h"
#include "runner/system/reason.h"

namespace runner {

namespace {

// The floats of the final weights in one message: 256 MiB.
constexpr size_t PIECE_FLOATS = 64 << 20;

// How long a worker may take to finish a piece of its own work after its job is over.
constexpr auto HANGING_AFTER = 5 * kj::SECONDS;

capnp::Data::Reader dataOf(kj::ArrayPtr<const float> values) {
  return values.asBytes();
}

}  // namespace

// Handles the coordinator's calls to a worker. On the io thread.
class IoThread::WorkerCalls final: public MemberCalls {
public:
  explicit WorkerCalls(const StopPoint& stops): stops(stops) {}

  StopPoint::Answer stopAt(uint64_t step) override {
    auto answer = stops.ask(step);
    if (answer.answer == StopAnswer::YES) stop.emplace(Stop{step});
    return answer;
  }

  void decide(uint64_t step, bool save) override {
    auto& now = KJ_REQUIRE_NONNULL(stop, "there is nothing to decide", step);
    KJ_REQUIRE(now.step == step, "another step is to be decided", step, now.step);
    KJ_IF_MAYBE(fulfiller, now.waiting) (*fulfiller)->fulfill(kj::cp(save));
    if (save) {
      now.isDecided = true;
    } else {
      stops.cancel();
      stop = nullptr;
    }
  }

  kj::Promise<bool> isToBeSaved(uint64_t step) {
    KJ_IF_MAYBE(now, stop) {
      if (now->step == step) {
        if (now->isDecided) return true;
        auto paf = kj::newPromiseAndFulfiller<bool>();
        now->waiting = kj::mv(paf.fulfiller);
        return kj::mv(paf.promise);
      }
    }
    // The coordinator has withdrawn its request meanwhile.
    return false;
  }

  void setMembers(kj::Array<io::MemberChange> changes) override {
    stops.tellChanges(kj::mv(changes));
  }

  void leaveSoon() override { stops.askToLeave(); }

  void saveShard(uint64_t step) override {
    KJ_REQUIRE_NONNULL(shard, "this worker holds no shard").save(step);
  }

  kj::Maybe<ShardSaver> shard;  // of the shard that this worker holds, if any

private:
  // The step at which the worker has agreed to stop.
  struct Stop {
    uint64_t step;
    bool isDecided = false;  // it is saved there
    kj::Maybe<kj::Own<kj::PromiseFulfiller<bool>>> waiting{};
  };

  const StopPoint& stops;
  kj::Maybe<Stop> stop;
};

// The objects of the io thread. Other threads may only use `executor`.
struct IoThread::Loop {
  Loop(const LoadedExperiment& loaded, const RoleOptions& options, rpc::MessageLimits limits,
      const LiveProgress& progress, const StopPoint& stops)
      : io(options.newIo()), calls(stops) {
    auto& kvstore = KJ_ASSERT_NONNULL(loaded.experiment).kvstore;
    kj::Maybe<const rpc::Transport&> transport;
    if (kvstore.workersHoldShards()) {
      rpc::pollOften(io.waitScope);
      transport = *kvstore.transport;
    }
    auto fill = [&progress](RoleProgress::Builder builder) {
      builder.setEpoch(progress.epoch);
      builder.setStep(progress.step);
      auto result = builder.initResult();
      result.setLossSum(progress.lossSum);
      result.setCorrect(progress.correct);
      result.setImages(progress.images);
      builder.setReadS(progress.read_s);
      builder.setStepsS(progress.steps_s);
      builder.setWork(progress.work);
      progress.wasRead = true;
    };
    joined = Membership::join(io, loaded, options, transport, limits, kj::mv(fill), calls)
                 .then([this](kj::Own<Membership> m) {
                   membership = kj::mv(m);
                   identity = membership->identity();
                 })
                 .fork();
    ended = joined.addBranch().then([this]() { return membership->ended(); }).fork();
    if (options.endHanging != nullptr) {
      hanging =
          ended.addBranch().catch_([this, &progress, end = options.endHanging](kj::Exception&& e) {
            return endIfHanging(progress, end, kj::mv(e));
          });
      hanging = hanging.eagerlyEvaluate(nullptr);
    }
  }
  KJ_DISALLOW_COPY(Loop);

  // The job is over. A compute thread that waits for other roles notices that, but one that hangs
  // does not.
  kj::Promise<void> endIfHanging(
      const LiveProgress& progress, void (*end)(const kj::Exception&), kj::Exception failure) {
    uint64_t work = progress.work;
    if (work % 2 == 0) return kj::READY_NOW;
    return io.provider->getTimer()
        .afterDelay(HANGING_AFTER)
        .then([&progress, end, work, failure = kj::mv(failure)]() {
          if (progress.work == work) end(failure);
        });
  }

  kj::AsyncIoContext io;
  const kj::Executor& executor = kj::getCurrentThreadExecutor();
  WorkerCalls calls;
  kj::Own<Membership> membership;             // null before the job is joined
  rpc::Identity identity;                     // once the job is joined
  kj::Maybe<rpc::ServedShard> shard;          // null unless this worker holds a shard
  kj::Promise<void> sending = kj::READY_NOW;  // parts of checkpoints, one after the other
  kj::Promise<void> serving = nullptr;        // serves the shard to the other workers
  kj::ForkedPromise<void> joined = nullptr;
  kj::ForkedPromise<void> ended = nullptr;   // the job is over; rejects with what went wrong
  kj::Promise<void> hanging = nullptr;       // ends the process if the compute thread hangs
  kj::Promise<void> store = kj::NEVER_DONE;  // rejects when a server is lost
  kj::PromiseCrossThreadFulfillerPair<void> leave = kj::newPromiseAndCrossThreadFulfiller<void>();
};

IoThread::IoThread(const LoadedExperiment& loaded, const RoleOptions& options,
    rpc::MessageLimits limits, const LiveProgress& progress)
    : rank(options.index), oneThread(options.oneThread) {
  if (oneThread != nullptr) {
    auto& loop = *shared.emplace(kj::heap<Loop>(loaded, options, limits, progress, stops));
    begun.lockExclusive()->loop = loop;
    return;
  }
  thread = kj::heap<kj::Thread>([this, &loaded, &options, limits, &progress]() {
    // Passes the exception to the compute thread, which would otherwise wait for the loop forever.
    KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { main(loaded, options, limits, progress); })) {
      begun.lockExclusive()->failure = kj::mv(*e);
    }
  });
}

IoThread::~IoThread() noexcept(false) {
  begun.when([](const Start& start) { return start.isKnown(); },
      [](Start& start) {
        KJ_IF_MAYBE(here, start.loop) here->leave.fulfiller->fulfill();
      });
}

void IoThread::main(const LoadedExperiment& loaded, const RoleOptions& options,
    rpc::MessageLimits limits, const LiveProgress& progress) {
  Loop here(loaded, options, limits, progress, stops);
  begun.lockExclusive()->loop = here;
  here.leave.promise.wait(here.io.waitScope);
}

IoThread::Loop& IoThread::getLoop() {
  return begun.when([](const Start& start) { return start.isKnown(); },
      [](Start& start) -> Loop& {
        KJ_IF_MAYBE(e, start.failure) kj::throwFatalException(kj::cp(*e));
        return KJ_ASSERT_NONNULL(start.loop);
      });
}

template <typename Call>
auto IoThread::runThere(Loop& there, Call&& call) {
  if (oneThread != nullptr) return kj::evalLater(call).wait(there.io.waitScope);
  return there.executor.executeSync(call);
}

template <typename T>
T IoThread::onLoop(kj::Function<kj::Promise<T>(Loop&)> call) {
  Loop& there = getLoop();
  return runThere(there, [&]() -> kj::Promise<T> {
    auto over = there.ended.addBranch().then([]() -> kj::Promise<T> { return kj::NEVER_DONE; });
    // All calls go to the coordinator. If it was lost, `ended` rejects with a plainer message.
    auto answered = call(there).catch_([&there](kj::Exception&& e) -> kj::Promise<T> {
      if (e.getType() != kj::Exception::Type::DISCONNECTED) return kj::mv(e);
      return there.ended.addBranch().then(
          [e = kj::mv(e)]() mutable -> kj::Promise<T> { return kj::mv(e); });
    });
    return answered.exclusiveJoin(kj::mv(over));
  });
}

void IoThread::start(kj::Maybe<rpc::RemoteStore&> store, const rpc::Transport& transport,
    rpc::MessageLimits storeLimits, kj::Duration patience, kj::Maybe<MakeShard> makeShard,
    uint64_t since) {
  onLoop<void>([&](Loop& here) {
    return here.joined.addBranch()
        .then([this, &here, &makeShard, store, storeLimits]() -> kj::Promise<void> {
          KJ_IF_MAYBE(make, makeShard) {
            auto shard = (*make)(here.io.unixEventPort);
            here.calls.shard.emplace(shard.shard, rank);
            return serve(here, kj::mv(shard), KJ_ASSERT_NONNULL(store), storeLimits);
          }
          return kj::READY_NOW;
        })
        .then([&here]() { return here.membership->session().startRequest().send(); })
        .then([this, &here, store, &transport, storeLimits, patience, since](
                  capnp::Response<Session::StartResults>&& response) {
          stops.tellChanges(changesOf(response.getChanges()));
          KJ_IF_MAYBE(s, store) {
            KJ_IF_MAYBE(one, oneThread) s->shareThread([one]() { one->yield(); });
            auto addresses = KJ_MAP(address, response.getShards()) {
              return rpc::ServerAddress{kj::str(address.getTcp()), kj::str(address.getLocal())};
            };
            // Each access to the list counts against the reader's traversal limit.
            auto all = response.getNames();
            KJ_REQUIRE(all.size() == addresses.size());
            auto names = KJ_MAP(i, kj::indices(addresses)) {
              return kj::str(all[i], " at ", addresses[i].tcp);
            };
            runStore(here, *s, kj::mv(names), kj::mv(addresses), transport, storeLimits, patience,
                since);
          }
        });
  });
}

kj::String IoThread::instructionSet() {
  return onLoop<kj::String>([](Loop& here) {
    return here.joined.addBranch()
        .then([&here]() { return here.membership->session().instructionSetRequest().send(); })
        .then([](capnp::Response<Session::InstructionSetResults>&& response) {
          return kj::str(response.getLevel());
        });
  });
}

kj::Promise<void> IoThread::serve(
    Loop& here, rpc::ServedShard shard, rpc::RemoteStore& store, rpc::MessageLimits limits) {
  auto service = shard.service;
  here.shard.emplace(kj::mv(shard));
  auto restored = KJ_ASSERT_NONNULL(here.calls.shard).begin(*here.membership);
  return restored.then([&here, &store, limits, service = kj::mv(service)]() mutable {
    here.serving = here.membership->listener()
                       .serve(here.io.provider->getTimer(), limits, kj::mv(service), here.identity)
                       .eagerlyEvaluate([&store](kj::Exception&& e) { store.fail(kj::mv(e)); });
  });
}

kj::Maybe<kj::Array<kj::byte>> IoThread::savedPart() {
  using Bytes = kj::Maybe<kj::Array<kj::byte>>;
  return onLoop<Bytes>([this](Loop& here) {
    return here.joined.addBranch().then([this, &here]() -> kj::Promise<Bytes> {
      auto& membership = *here.membership;
      if (!membership.continues() || membership.enters()) return Bytes(nullptr);
      return fetchPart(membership.session(), {Part::WORKER, rank})
          .then([](kj::Array<kj::byte> part) -> Bytes { return kj::mv(part); });
    });
  });
}

bool IoThread::enters() {
  return onLoop<bool>([](Loop& here) {
    return here.joined.addBranch().then([&here]() { return here.membership->enters(); });
  });
}

kj::Maybe<kj::Array<kj::byte>> IoThread::enter() {
  using Bytes = kj::Maybe<kj::Array<kj::byte>>;
  auto& there = getLoop();
  return runThere(there, [&]() {
    auto over = there.ended.addBranch().then([]() -> Bytes { return nullptr; });
    auto& membership = *there.membership;
    auto entered = membership.session().enterRequest().send().then(
        [this, &membership](capnp::Response<Session::EnterResults>&&) {
          return fetchPart(membership.session(), {Part::WORKER, rank});
        });
    auto fetched = entered.then([](kj::Array<kj::byte> part) { return Bytes(kj::mv(part)); });
    // If the coordinator was lost, `ended` rejects with a plainer message.
    return over.exclusiveJoin(neverIfLost(kj::mv(fetched)));
  });
}

bool IoThread::isToBeSaved(uint64_t step) {
  return onLoop<bool>([step](Loop& here) { return here.calls.isToBeSaved(step); });
}

void IoThread::send(uint64_t step, Part kind, SavedPart part) {
  auto& there = getLoop();
  runThere(there, [&]() {
    there.sending =
        there.sending
            .then([&there, step, name = PartName{kind, rank}, part = kj::mv(part)]() mutable {
              return sendPart(there.membership->session(), step, name, kj::mv(part));
            })
            .eagerlyEvaluate(
                // If a part never arrives, all workers wait for it at the next checkpoint.
                [&there](kj::Exception&& e) { there.membership->fail(kj::mv(e)); });
  });
}

void IoThread::awaitSent() {
  onLoop<void>([](Loop& here) {
    auto sent = here.sending.fork();
    here.sending = sent.addBranch();
    return sent.addBranch();
  });
}

void IoThread::runStore(Loop& here, rpc::RemoteStore& store, kj::Array<kj::String> names,
    kj::Array<rpc::ServerAddress> addresses, const rpc::Transport& transport,
    rpc::MessageLimits limits, kj::Duration patience, uint64_t since) {
  auto& provider = *here.io.provider;
  auto role = here.shard == nullptr ? Role::SERVER : Role::WORKER;
  auto connect = [&network = provider.getNetwork(), &transport, limits, &own = here.identity, role,
                     addresses = kj::mv(addresses)](uint server) {
    return rpc::connect(network, addresses[server], transport, own, roleName(role, server))
        .then([limits](kj::Own<kj::AsyncIoStream> stream) {
          return kj::heap<rpc::Peer>(kj::mv(stream), limits);
        });
  };
  auto running = store.run({kj::mv(names), kj::mv(connect), provider.getTimer(), patience,
      here.shard.map([](rpc::ServedShard& own) { return own.service; }), since});
  // If the coordinator is lost, the store may wait for something that never comes. The store must
  // learn of the loss before exclusiveJoin() cancels its work.
  auto watch = here.ended.addBranch()
                   .then([]() {}, [&store](kj::Exception&& e) { store.fail(kj::mv(e)); })
                   .eagerlyEvaluate(nullptr);
  here.store = running.exclusiveJoin(kj::mv(watch)).eagerlyEvaluate(nullptr);
}

void IoThread::report(kj::Function<void(Event::Builder)> fill) {
  onLoop<void>([&](Loop& here) {
    auto request = here.membership->session().reportRequest();
    fill(request.initEvent());
    return request.send().ignoreResult();
  });
}

MeetingOutcome IoThread::meet(uint epoch, uint64_t step, MeetingPoint point,
    const nn::BatchResult& result, kj::ArrayPtr<const float> statistics,
    kj::ArrayPtr<const nn::ConfusionCell> confusion) {
  return onLoop<MeetingOutcome>([&](Loop& here) {
    auto request = here.membership->session().meetRequest();
    request.setEpoch(epoch);
    request.setPoint(point);
    request.setStep(step);
    auto sums = request.initResult();
    sums.setLossSum(result.lossSum);
    sums.setCorrect(result.correct);
    sums.setImages(result.images);
    sums.setInTopK(result.inTopK);
    request.setStatistics(dataOf(statistics));
    if (confusion.size() > 0) setCells(request.initConfusion(confusion.size()), confusion);
    return request.send().then([](capnp::Response<Session::MeetResults>&& response) {
      auto sums = response.getResult();
      auto data = response.getStatistics();
      auto mean = kj::heapArray<float>(data.size() / sizeof(float));
      memcpy(mean.begin(), data.begin(), mean.size() * sizeof(float));
      return MeetingOutcome{
          {sums.getLossSum(), sums.getCorrect(), sums.getImages(), sums.getInTopK()}, kj::mv(mean),
          response.getStopNext(), response.getPart(), response.getParts(), response.getAgain()};
    });
  });
}

void IoThread::leave() {
  auto& there = getLoop();
  runThere(there, [&]() {
    auto left = there.sending.then(
        [&there]() { return there.membership->session().leaveRequest().send().ignoreResult(); });
    // If the job cannot continue without this worker, it ends.
    return left.exclusiveJoin(there.ended.addBranch()).catch_([](kj::Exception&&) {});
  });
}

kj::String IoThread::tellFailure(const kj::Exception& failure) {
  auto& there = getLoop();
  return runThere(there, [&]() {
    auto limit = there.io.provider->getTimer().afterDelay(1 * kj::SECONDS);
    return there.joined.addBranch().exclusiveJoin(kj::mv(limit)).then([&]() {
      return there.membership.get() == nullptr ? kj::Promise<kj::String>(reasonOf(failure))
                                               : there.membership->tellFailure(failure);
    });
  });
}

kj::Duration IoThread::clockAhead() {
  auto& there = getLoop();
  return runThere(there, [&]() { return there.membership->clockAhead(); });
}

void IoThread::finish(kj::ArrayPtr<const float> parameters, kj::ArrayPtr<const float> statistics) {
  auto& there = getLoop();
  runThere(there, [&]() {
    there.store = kj::NEVER_DONE;  // From now on, servers may leave.
    auto request = there.membership->session().finishRequest();
    uint pieces = (parameters.size() + PIECE_FLOATS - 1) / PIECE_FLOATS;
    auto list = request.initParameters(pieces);
    for (uint i = 0; i < pieces; i++) {
      size_t begin = i * PIECE_FLOATS, end = kj::min(begin + PIECE_FLOATS, parameters.size());
      list.set(i, dataOf(parameters.slice(begin, end)));
    }
    request.setStatistics(dataOf(statistics));
    // The end of the job counts for more than the answer. If this process was stopped meanwhile,
    // the coordinator has sent both and has left, and the connection may break before the answer is
    // read.
    auto refused =
        there.sending
            .then([request = kj::mv(request)]() mutable { return request.send().ignoreResult(); })
            .then([]() -> kj::Promise<void> { return kj::NEVER_DONE; });
    return there.ended.addBranch().exclusiveJoin(neverIfLost(kj::mv(refused)));
  });
}

}  // namespace runner

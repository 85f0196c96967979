#include "runner/roles/io_thread.h"

#include <kj/debug.h>

#include "rpc/shard/shard_server.h"
#include "runner/logs/role_names.h"
#include "runner/system/reason.h"

namespace runner {

namespace {

capnp::Data::Reader dataOf(kj::ArrayPtr<const float> values) {
  return values.asBytes();
}

}  // namespace

IoThread::IoThread(const LoadedExperiment& loaded, const RoleOptions& options,
    rpc::MessageLimits limits, const LiveProgress& progress)
    : thread([this, &loaded, &options, limits, &progress]() {
        // Goes to the compute thread, which would otherwise wait for the loop for ever.
        KJ_IF_MAYBE(e,
            kj::runCatchingExceptions([&]() { main(loaded, options, limits, progress); })) {
          begun.lockExclusive()->failure = kj::mv(*e);
        }
      }) {}

IoThread::~IoThread() noexcept(false) {
  begun.when([](const Start& start) { return start.isKnown(); },
      [](Start& start) {
        KJ_IF_MAYBE(here, start.loop) here->leave->fulfill();
      });
}

void IoThread::main(const LoadedExperiment& loaded, const RoleOptions& options,
    rpc::MessageLimits limits, const LiveProgress& progress) {
  auto io = kj::setupAsyncIo();
  auto leave = kj::newPromiseAndCrossThreadFulfiller<void>();
  auto& kvstore = KJ_ASSERT_NONNULL(loaded.experiment).kvstore;
  kj::Maybe<const rpc::Transport&> transport;
  if (kvstore.workersHoldShards()) {
    rpc::pollOften(io.waitScope);
    transport = *kvstore.transport;
  }
  auto joined = Membership::join(
      io, loaded, options, transport, limits, [&progress](RoleProgress::Builder builder) {
        builder.setEpoch(progress.epoch);
        builder.setStep(progress.step);
        auto result = builder.initResult();
        result.setLossSum(progress.lossSum);
        result.setCorrect(progress.correct);
        result.setImages(progress.images);
        progress.wasRead = true;
      });
  Loop here{.executor = kj::getCurrentThreadExecutor(),
      .io = io,
      .serving = nullptr,
      .joined = nullptr,
      .ended = nullptr,
      .store = kj::NEVER_DONE,
      .leave = kj::mv(leave.fulfiller)};
  here.joined = joined
                    .then([&here](kj::Own<Membership> m) {
                      here.membership = kj::mv(m);
                      here.identity = here.membership->identity();
                    })
                    .fork();
  here.ended = here.joined.addBranch().then([&here]() { return here.membership->ended(); }).fork();
  begun.lockExclusive()->loop = here;
  leave.promise.wait(io.waitScope);
}

IoThread::Loop& IoThread::getLoop() {
  return begun.when([](const Start& start) { return start.isKnown(); },
      [](Start& start) -> Loop& {
        KJ_IF_MAYBE(e, start.failure) kj::throwFatalException(kj::cp(*e));
        return KJ_ASSERT_NONNULL(start.loop);
      });
}

template <typename T>
T IoThread::run(kj::Function<kj::Promise<T>(Loop&)> call) {
  Loop& there = getLoop();
  return there.executor.executeSync([&]() -> kj::Promise<T> {
    auto over = there.ended.addBranch().then([]() -> kj::Promise<T> { return kj::NEVER_DONE; });
    // All calls go to the coordinator. If the coordinator is gone, `ended` says so in plain words.
    auto answered = call(there).catch_([&there](kj::Exception&& e) -> kj::Promise<T> {
      if (e.getType() != kj::Exception::Type::DISCONNECTED) return kj::mv(e);
      return there.ended.addBranch().then(
          [e = kj::mv(e)]() mutable -> kj::Promise<T> { return kj::mv(e); });
    });
    return answered.exclusiveJoin(kj::mv(over));
  });
}

void IoThread::start(kj::Maybe<rpc::RemoteStore&> store, const rpc::Transport& transport,
    rpc::MessageLimits storeLimits, kj::Duration patience, kj::Maybe<MakeShard> makeShard) {
  run<void>([&](Loop& here) {
    return here.joined.addBranch()
        .then([&here, &makeShard, store, storeLimits]() {
          KJ_IF_MAYBE(make, makeShard) {
            serve(here, (*make)(here.io.unixEventPort), KJ_ASSERT_NONNULL(store), storeLimits);
          }
          return here.membership->session().startRequest().send();
        })
        .then([&here, store, &transport, storeLimits, patience](
                  capnp::Response<Session::StartResults>&& response) {
          KJ_IF_MAYBE(s, store) {
            auto addresses = KJ_MAP(address, response.getShards()) {
              return rpc::ServerAddress{kj::str(address.getTcp()), kj::str(address.getLocal())};
            };
            run(here, *s, kj::mv(addresses), transport, storeLimits, patience);
          }
        });
  });
}

kj::String IoThread::instructionSet() {
  return run<kj::String>([](Loop& here) {
    return here.joined.addBranch()
        .then([&here]() { return here.membership->session().instructionSetRequest().send(); })
        .then([](capnp::Response<Session::InstructionSetResults>&& response) {
          return kj::str(response.getLevel());
        });
  });
}

void IoThread::serve(Loop& here, rpc::ShardService::Client shard, rpc::RemoteStore& store,
    rpc::MessageLimits limits) {
  here.shard = shard;
  here.serving = here.membership->listener()
                     .serve(here.io.provider->getTimer(), limits, kj::mv(shard), here.identity)
                     .eagerlyEvaluate([&store](kj::Exception&& e) { store.fail(kj::mv(e)); });
}

void IoThread::run(Loop& here, rpc::RemoteStore& store, kj::Array<rpc::ServerAddress> addresses,
    const rpc::Transport& transport, rpc::MessageLimits limits, kj::Duration patience) {
  auto& provider = *here.io.provider;
  auto role = here.shard == nullptr ? Role::SERVER : Role::WORKER;
  auto names = KJ_MAP(i, kj::indices(addresses)) {
    return kj::str(roleName(role, i), " at ", addresses[i].tcp);
  };
  auto connect = [&network = provider.getNetwork(), &transport, limits, &own = here.identity, role,
                     addresses = kj::mv(addresses)](uint server) {
    return rpc::connect(network, addresses[server], transport, own, roleName(role, server))
        .then([limits](kj::Own<kj::AsyncIoStream> stream) {
          return kj::heap<rpc::Peer>(kj::mv(stream), limits);
        });
  };
  auto running =
      store.run({kj::mv(names), kj::mv(connect), provider.getTimer(), patience, here.shard});
  // If the coordinator is lost, the store may wait for something that never comes.
  auto watch =
      here.ended.addBranch().then([]() {}, [&store](kj::Exception&& e) { store.fail(kj::mv(e)); });
  here.store = running.exclusiveJoin(kj::mv(watch)).eagerlyEvaluate(nullptr);
}

void IoThread::report(kj::Function<void(Event::Builder)> fill) {
  run<void>([&](Loop& here) {
    auto request = here.membership->session().reportRequest();
    fill(request.initEvent());
    return request.send().ignoreResult();
  });
}

Contribution IoThread::meet(uint epoch, MeetingPoint point, const nn::BatchResult& result,
    kj::ArrayPtr<const float> statistics) {
  return run<Contribution>([&](Loop& here) {
    auto request = here.membership->session().meetRequest();
    request.setEpoch(epoch);
    request.setPoint(point);
    auto sums = request.initResult();
    sums.setLossSum(result.lossSum);
    sums.setCorrect(result.correct);
    sums.setImages(result.images);
    request.setStatistics(dataOf(statistics));
    return request.send().then([](capnp::Response<Session::MeetResults>&& response) {
      auto sums = response.getResult();
      auto data = response.getStatistics();
      auto mean = kj::heapArray<float>(data.size() / sizeof(float));
      memcpy(mean.begin(), data.begin(), mean.size() * sizeof(float));
      return Contribution{{sums.getLossSum(), sums.getCorrect(), sums.getImages()}, kj::mv(mean)};
    });
  });
}

kj::String IoThread::tellFailure(const kj::Exception& failure) {
  auto& there = getLoop();
  return there.executor.executeSync([&]() {
    auto limit = there.io.provider->getTimer().afterDelay(1 * kj::SECONDS);
    return there.joined.addBranch().exclusiveJoin(kj::mv(limit)).then([&]() {
      return there.membership.get() == nullptr ? kj::Promise<kj::String>(reasonOf(failure))
                                               : there.membership->tellFailure(failure);
    });
  });
}

kj::Duration IoThread::clockAhead() {
  auto& there = getLoop();
  return there.executor.executeSync([&]() { return there.membership->clockAhead(); });
}

void IoThread::finish(kj::ArrayPtr<const float> parameters, kj::ArrayPtr<const float> statistics) {
  auto& there = getLoop();
  there.executor.executeSync([&]() {
    there.store = kj::NEVER_DONE;  // From now on, servers may leave.
    auto request = there.membership->session().finishRequest();
    request.setParameters(dataOf(parameters));
    request.setStatistics(dataOf(statistics));
    // The end of the job says more than the answer. If this process was stopped meanwhile, the
    // coordinator has sent both and has left, and the connection may break before the answer is
    // read.
    auto refused =
        request.send().ignoreResult().then([]() -> kj::Promise<void> { return kj::NEVER_DONE; },
            [](kj::Exception&& e) -> kj::Promise<void> {
              if (e.getType() == kj::Exception::Type::DISCONNECTED) return kj::NEVER_DONE;
              return kj::mv(e);
            });
    return there.ended.addBranch().exclusiveJoin(kj::mv(refused));
  });
}

}  // namespace runner

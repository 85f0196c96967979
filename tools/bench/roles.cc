#include "tools/bench/roles.h"

#include <kj/async-io.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <time.h>
#include <unistd.h>

#include "rpc/shard/shard_server.h"
#include "rpc/wire/encryption.h"
#include "rpc/wire/peer.h"

namespace tools {
namespace {

// Resolves to the stream that the bench has put at an index of this role. `tls` says which end
// encrypts it; null: it stays as it is.
kj::Promise<kj::Own<kj::AsyncIoStream>> streamAt(
    kj::AsyncIoContext& io, uint index, kj::Maybe<rpc::End> tls) {
  auto stream = io.lowLevelProvider->wrapSocketFd(kj::AutoCloseFd(FIRST_STREAM + int(index)));
  // Nobody else has the stream, so any key will do.
  KJ_IF_MAYBE(end, tls) return rpc::encrypt(kj::mv(stream), {}, *end);
  return kj::mv(stream);
}

}  // namespace

uint64_t now_ns() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return uint64_t(now.tv_sec) * 1'000'000'000 + uint64_t(now.tv_nsec);
}

kj::Vector<uint64_t> timesOf(uint64_t count, kj::FunctionParam<void()> call) {
  kj::Vector<uint64_t> times;
  times.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t begin = now_ns();
    call();
    times.add(now_ns() - begin);
  }
  return times;
}

void carryOutOrders(kj::FunctionParam<kj::Vector<uint64_t>(const KvOrder&)> carryOut) {
  kj::FdInputStream orders(STDIN_FILENO);
  kj::FdOutputStream answers(STDOUT_FILENO);
  KvOrder order;
  while (orders.tryRead(&order, sizeof(order), sizeof(order)) == sizeof(order)) {
    auto answer = carryOut(order);
    answers.write(answer.begin(), answer.asPtr().asBytes().size());
  }
}

void carryOutOrders(kj::FunctionParam<void()> trip, kj::FunctionParam<void()> check) {
  carryOutOrders([&](const KvOrder& order) {
    kj::Vector<uint64_t> answer;
    switch (order.what) {
      case KvOrder::TRIPS:
        return timesOf(order.count, trip);
      case KvOrder::CHECK:
        check();
        answer.add(0);
        return answer;
      default:
        KJ_FAIL_REQUIRE("no order for this role", uint64_t(order.what));
    }
  });
}

StoreThread::StoreThread(rpc::RemoteStore& store, const rpc::Placement& placement, bool tls)
    : store(store), placement(placement), tls(tls), thread([this]() { talk(); }) {}

StoreThread::~StoreThread() noexcept(false) {
  auto lock = stop.lockExclusive();
  lock.wait([](const auto& there) { return there != nullptr; });
  KJ_ASSERT_NONNULL(*lock)->fulfill();
}

void StoreThread::talk() {
  auto io = kj::setupAsyncIo();
  auto paf = kj::newPromiseAndCrossThreadFulfiller<void>();
  *stop.lockExclusive() = kj::mv(paf.fulfiller);
  auto names = KJ_MAP(i, kj::indices(placement.shards)) {
    return kj::str("server ", i);
  };
  kj::Maybe<rpc::End> end;
  if (tls) end = rpc::End::CALLER;
  auto connect = [this, &io, end](uint server) {
    return streamAt(io, server, end).then([this](kj::Own<kj::AsyncIoStream> stream) {
      return kj::heap<rpc::Peer>(kj::mv(stream), rpc::limitsFor(placement));
    });
  };
  store.run({kj::mv(names), connect, io.provider->getTimer(), 60 * kj::SECONDS})
      .catch_([](kj::Exception&&) { /* The compute thread throws the same. */ })
      .exclusiveJoin(kj::mv(paf.promise))
      .wait(io.waitScope);
}

void serveShard(const rpc::Placement& placement, uint shard, const rpc::Rounds& rounds,
    rpc::Updater& updater, bool shares, bool tls) {
  auto io = kj::setupAsyncIo();
  rpc::pollOften(io.waitScope);
  kj::Maybe<kj::UnixEventPort&> port;
  if (shares) port = io.unixEventPort;
  auto service = rpc::newShardServer(placement, shard, rounds, updater, port).service;
  kj::Maybe<rpc::End> end;
  if (tls) end = rpc::End::LISTENER;
  auto serving = KJ_MAP(worker, kj::range(0u, rounds.workers)) {
    return streamAt(io, worker, end)
        .then([&placement, service](kj::Own<kj::AsyncIoStream> stream) mutable {
          return rpc::serve(kj::mv(stream), rpc::limitsFor(placement), kj::mv(service));
        });
  };
  kj::joinPromises(kj::mv(serving)).wait(io.waitScope);
}

}  // namespace tools

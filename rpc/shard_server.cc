#include "rpc/shard_server.h"

#include <capnp/orphan.h>
#include <kj/debug.h>
#include <kj/vector.h>

#include "rpc/shard.h"

namespace rpc {

namespace {

// Waits for slices to reach versions.
class Waiting {
public:
  explicit Waiting(size_t slices): waiters(kj::heapArray<kj::Vector<Waiter>>(slices)) {}

  kj::Promise<void> until(SliceId id, uint64_t version) {
    auto paf = kj::newPromiseAndFulfiller<void>();
    waiters[id].add(Waiter{version, kj::mv(paf.fulfiller)});
    return kj::mv(paf.promise);
  }

  // Slice `id` has reached `version`.
  void reached(SliceId id, uint64_t version) {
    auto& list = waiters[id];
    size_t kept = 0;
    for (auto& waiter: list) {
      if (waiter.version <= version) {
        waiter.fulfiller->fulfill();
      } else {
        auto stays = kj::mv(waiter);
        list[kept++] = kj::mv(stays);
      }
    }
    list.truncate(kept);
  }

private:
  struct Waiter {
    uint64_t version;
    kj::Own<kj::PromiseFulfiller<void>> fulfiller;
  };
  kj::Array<kj::Vector<Waiter>> waiters;
};

kj::ArrayPtr<const float> asFloats(capnp::Data::Reader data) {
  KJ_REQUIRE(data.size() % sizeof(float) == 0, "a payload must be whole float32 values of 4 bytes",
      data.size());
  // A message's Data begins at a multiple of 8 bytes.
  return kj::arrayPtr(reinterpret_cast<const float*>(data.begin()), data.size() / sizeof(float));
}

class ShardServer final: public ShardService::Server {
public:
  ShardServer(
      const Placement& placement, uint shard, const Mode& mode, uint workers, Updater& updater)
      : placement(placement.digest()),
        index(shard),
        mode(mode),
        shard(placement, shard, mode, workers, updater),
        waiting(placement.slices.size()),
        sessions(kj::heapArray<uint>(workers)),
        started(kj::heapArray<bool>(workers)) {
    for (auto& count: sessions) count = 0;
    for (auto& flag: started) flag = false;
  }

  kj::Promise<void> hello(HelloContext context) override;

private:
  class Session;

  // Resolves when slice `id` has values of at least `version`.
  kj::Promise<void> atLeast(SliceId id, uint64_t version) {
    KJ_IF_MAYBE(present, shard.version(id)) {
      if (*present >= version) return kj::READY_NOW;
    }
    return waiting.until(id, version);
  }

  void wake(SliceId id) {
    KJ_IF_MAYBE(present, shard.version(id)) {
      waiting.reached(id, *present);
    }
  }

  uint64_t placement;  // digest
  uint index;          // of the shard
  const Mode& mode;
  Shard shard;
  Waiting waiting;
  kj::Array<uint> sessions;  // hellos of each rank: the last one counts
  kj::Array<bool> started;   // ranks that called start()
  kj::Vector<kj::Own<kj::PromiseFulfiller<void>>> starting;
};

// Calls stay not cancellable: that keeps a message, and with it a gradient that the shard still
// needs, until the answer.
class ShardServer::Session final: public ShardSession::Server {
public:
  Session(ShardServer& server, ShardService::Client keepAlive, uint rank)
      : server(server), keepAlive(kj::mv(keepAlive)), rank(rank), number(++server.sessions[rank]) {}

  kj::Promise<void> initialize(InitializeContext context) override {
    requireNewest();
    KJ_REQUIRE(rank == 0, "only rank 0 sends initial values", rank);
    auto params = context.getParams();
    server.shard.initialize(params.getSlice(), asFloats(params.getValues()));
    server.wake(params.getSlice());
    return kj::READY_NOW;
  }

  kj::Promise<void> start(StartContext) override {
    requireNewest();
    KJ_REQUIRE(
        server.shard.isInitialized(), "a worker starts, but not all slices have values", rank);
    server.started[rank] = true;
    for (bool flag: server.started) {
      if (flag) continue;
      auto paf = kj::newPromiseAndFulfiller<void>();
      server.starting.add(kj::mv(paf.fulfiller));
      return kj::mv(paf.promise);
    }
    for (auto& fulfiller: server.starting) fulfiller->fulfill();
    server.starting.clear();
    return kj::READY_NOW;
  }

  kj::Promise<void> pull(PullContext context) override {
    requireNewest();
    auto params = context.getParams();
    SliceId id = params.getSlice();
    return server.atLeast(id, params.getAtLeastVersion()).then([this, context, id]() mutable {
      answer(context, id);
    });
  }

  kj::Promise<void> pushPull(PushPullContext context) override {
    requireNewest();
    auto params = context.getParams();
    SliceId id = params.getSlice();
    uint64_t due = server.shard.push(rank, id, params.getStep(), asFloats(params.getGradient()));
    server.wake(id);
    return server.atLeast(id, due).then([this, context, id]() mutable { answer(context, id); });
  }

private:
  void requireNewest() {
    if (number != server.sessions[rank]) {
      KJ_FAIL_REQUIRE(
          "another worker has said hello with this rank; give each worker its own", rank);
    }
  }

  template <typename Context>
  void answer(Context& context, SliceId id) {
    auto lent = server.shard.lend(rank, id);
    auto results = context.getResults(capnp::MessageSize{8, 0});
    results.setVersion(lent.version);
    auto orphanage = capnp::Orphanage::getForMessageContaining(results);
    results.adoptValues(orphanage.referenceExternalData(lent.values.asBytes()));
  }

  ShardServer& server;
  ShardService::Client keepAlive;
  uint rank;
  uint number;
};

kj::Promise<void> ShardServer::hello(HelloContext context) {
  auto params = context.getParams();
  uint rank = params.getRank();
  // Plain sentences: this is what a user reads who started a role with another file.
  auto workerMode = params.getMode();
  if (workerMode != mode.name) {
    KJ_FAIL_REQUIRE(
        "worker and server run different kvstore modes; start all roles with the same file", rank,
        workerMode, mode.name);
  }
  auto workers = params.getWorkers();
  if (workers != sessions.size()) {
    KJ_FAIL_REQUIRE(
        "worker and server count different numbers of workers; start all roles with the same file",
        rank, workers, sessions.size());
  }
  if (rank >= workers) KJ_FAIL_REQUIRE("there is no worker of this rank", rank, workers);
  if (params.getPlacement() != placement) {
    KJ_FAIL_REQUIRE(
        "worker and server divide the parameters differently; start all roles with the same file "
        "and the same binary",
        rank);
  }
  auto meant = params.getShard();
  if (meant != index) {
    KJ_FAIL_REQUIRE("a worker took this server for another; give it the servers in their order",
        rank, meant, index);
  }
  context.getResults().setSession(kj::heap<Session>(*this, thisCap(), rank));
  return kj::READY_NOW;
}

}  // namespace

ShardService::Client newShardServer(
    const Placement& placement, uint shard, const Mode& mode, uint workers, Updater& updater) {
  return kj::heap<ShardServer>(placement, shard, mode, workers, updater);
}

}  // namespace rpc

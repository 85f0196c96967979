// rpc/testing/test_own_shards.h: io threads of workers that each serve their own shard, for the
// tests of stores.
#pragma once

#include <kj/debug.h>
#include <kj/mutex.h>
#include <kj/vector.h>

#include "rpc/testing/test_identity.h"
#include "rpc/testing/test_threads.h"

namespace rpc {

// The addresses of the workers' shards. Each worker waits until all shards listen.
using ShardAddresses = kj::MutexGuarded<kj::Vector<kj::Maybe<ServerAddress>>>;

// An io thread that serves the worker's own shard, beside what StoreThread does.
class OwnShardThread {
public:
  OwnShardThread(const Placement& placement, const Rounds& rounds, uint rank, RemoteStore& store,
      Updater& updater, Through through, const ShardAddresses& addresses)
      : placement(placement),
        rounds(rounds),
        rank(rank),
        store(store),
        updater(updater),
        addresses(addresses),
        through(kj::mv(through)),
        io([this](kj::AsyncIoContext& io) { return talk(io); }) {}

private:
  kj::Promise<void> talk(kj::AsyncIoContext& io) {
    auto& network = io.provider->getNetwork();
    auto own = newShardServer(placement, rank, rounds, updater).service;
    return Listener::listen(network, TCP)
        .then([this, &io, own](kj::Own<Listener> listener) mutable {
          auto& here = listener->address();
          (*addresses.lockExclusive())[rank] = ServerAddress{kj::str(here.tcp), nullptr};
          auto serving =
              listener->serve(io.provider->getTimer(), limitsFor(placement), own, testIdentity());
          return serving.exclusiveJoin(run(io, kj::mv(own))).attach(kj::mv(listener));
        });
  }

  kj::Promise<void> run(kj::AsyncIoContext& io, ShardService::Client own) {
    auto& network = io.provider->getNetwork();
    addresses.lockExclusive().wait([](const kj::Vector<kj::Maybe<ServerAddress>>& all) {
      for (auto& address: all) {
        if (address == nullptr) return false;
      }
      return true;
    });
    auto names = KJ_MAP(i, kj::zeroTo(rounds.workers)) {
      return kj::str("worker ", i);
    };
    auto connect = [this, &network](uint other) {
      auto lock = addresses.lockExclusive();
      return rpc::connect(
          network, KJ_ASSERT_NONNULL((*lock)[other]), TCP, testIdentity(), testIdentity().name)
          .then([this](kj::Own<kj::AsyncIoStream>&& stream) {
            return kj::heap<Peer>(through(kj::mv(stream)), limitsFor(placement));
          });
    };
    return store
        .run(
            {kj::mv(names), kj::mv(connect), io.provider->getTimer(), 5 * kj::SECONDS, kj::mv(own)})
        .catch_([](kj::Exception&&) { /* The compute thread throws the same. */ });
  }

  const Placement& placement;
  const Rounds rounds;
  const uint rank;
  RemoteStore& store;
  Updater& updater;
  const ShardAddresses& addresses;
  Through through;
  LoopThread io;
};

}  // namespace rpc

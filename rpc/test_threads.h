// rpc/test_threads.h: servers and workers on threads of their own, connected over the loopback, for
// the tests of stores.
#pragma once

#include <kj/async-io.h>
#include <kj/debug.h>
#include <kj/function.h>
#include <kj/mutex.h>
#include <kj/thread.h>
#include <kj/vector.h>

#include "rpc/kv_store.h"
#include "rpc/peer.h"
#include "rpc/shard_server.h"
#include "rpc/test_model.h"

namespace rpc {

// A thread with an event loop that runs `body` until it is told to stop or the body ends.
class LoopThread {
public:
  using Body = kj::Function<kj::Promise<void>(kj::AsyncIoContext&)>;

  explicit LoopThread(Body ownBody): body(kj::mv(ownBody)), thread([this]() { main(); }) {
    started.lockExclusive().wait([](const Started& now) { return now.stop != nullptr; });
  }
  ~LoopThread() noexcept(false) { KJ_ASSERT_NONNULL(started.lockExclusive()->stop)->fulfill(); }

private:
  struct Started {
    kj::Maybe<kj::Own<kj::CrossThreadPromiseFulfiller<void>>> stop;
  };

  void main() {
    auto io = kj::setupAsyncIo();
    auto paf = kj::newPromiseAndCrossThreadFulfiller<void>();
    started.lockExclusive()->stop = kj::mv(paf.fulfiller);
    body(io).exclusiveJoin(kj::mv(paf.promise)).wait(io.waitScope);
  }

  Body body;
  kj::MutexGuarded<Started> started;
  kj::Thread thread;
};

// One parameter server on a loopback port that the system chose.
class ServerThread {
public:
  ServerThread(const Placement& placement, uint shard, const Rounds& rounds, Updater& updater)
      : thread([this, &placement, shard, rounds, &updater](kj::AsyncIoContext& io) {
          return listen(io, placement, newShardServer(placement, shard, rounds, updater));
        }) {}

  uint port() {
    auto lock = number.lockExclusive();
    lock.wait([](uint port) { return port != 0; });
    return *lock;
  }

private:
  kj::Promise<void> listen(
      kj::AsyncIoContext& io, const Placement& placement, ShardService::Client server) {
    return io.provider->getNetwork()
        .parseAddress("127.0.0.1:0")
        .then([this, &placement, server](kj::Own<kj::NetworkAddress>&& address) mutable {
          auto receiver = address->listen();
          *number.lockExclusive() = receiver->getPort();
          auto serving = serveAll(*receiver, limitsFor(placement), kj::mv(server));
          return serving.attach(kj::mv(receiver));
        });
  }

  kj::MutexGuarded<uint> number{0u};
  LoopThread thread;
};

// What a worker's connection goes through: gets what leads to the server, returns the worker's end.
// Called on the worker's io thread.
using Through = kj::Function<kj::Own<kj::AsyncIoStream>(kj::Own<kj::AsyncIoStream>)>;

// The thread that connects a worker's store to servers.
class StoreThread {
public:
  StoreThread(
      RemoteStore& store, const Placement& placement,
      kj::ArrayPtr<const kj::Own<ServerThread>> servers,
      Through through = [](auto stream) { return stream; })
      : store(store),
        placement(placement),
        ports(portsOf(servers)),
        through(kj::mv(through)),
        io([this](kj::AsyncIoContext& io) { return talk(io); }) {}

private:
  static kj::Vector<uint> portsOf(kj::ArrayPtr<const kj::Own<ServerThread>> servers) {
    kj::Vector<uint> ports;
    for (auto& server: servers) ports.add(const_cast<ServerThread&>(*server).port());
    return ports;
  }

  kj::Promise<void> talk(kj::AsyncIoContext& io) {
    auto& network = io.provider->getNetwork();
    auto names = KJ_MAP(i, kj::indices(ports)) {
      return kj::str("server ", i, " at 127.0.0.1:", ports[i]);
    };
    auto connect = [this, &network](uint server) {
      return network.parseAddress(kj::str("127.0.0.1:", ports[server]))
          .then([](kj::Own<kj::NetworkAddress>&& address) {
            auto stream = address->connect();
            return stream.attach(kj::mv(address));
          })
          .then([this](kj::Own<kj::AsyncIoStream>&& stream) {
            return kj::heap<Peer>(through(kj::mv(stream)), limitsFor(placement));
          });
    };
    return store.run({kj::mv(names), kj::mv(connect), io.provider->getTimer(), 5 * kj::SECONDS})
        .catch_([](kj::Exception&&) { /* The compute thread throws the same. */ });
  }

  RemoteStore& store;
  const Placement& placement;
  kj::Vector<uint> ports;
  Through through;
  LoopThread io;
};

// A worker's arrays, its store, and its thread.
struct Worker {
  kj::Array<float> parameters;
  kj::Array<float> gradients;
  kj::Own<RemoteStore> store;
  StoreThread io;

  Worker(
      const Placement& placement, const Rounds& rounds, uint rank,
      kj::ArrayPtr<const kj::Own<ServerThread>> servers,
      Through through = [](auto stream) { return stream; })
      : parameters(kj::heapArray<float>(placement.parameters())),
        gradients(kj::heapArray<float>(placement.parameters())),
        store(RemoteStore::create(placement, rounds, rank, parameters, gradients)),
        io(*store, placement, servers, kj::mv(through)) {
    for (auto i: kj::indices(parameters)) parameters[i] = rank == 0 ? noise(99, i, 0) : -1;
  }
};

// A thread for each server of `placement`.
inline kj::Array<kj::Own<ServerThread>> startServers(
    const Placement& placement, const Rounds& rounds, Updater& updater) {
  return KJ_MAP(shard, kj::indices(placement.shards)) {
    return kj::heap<ServerThread>(placement, shard, rounds, updater);
  };
}

}  // namespace rpc

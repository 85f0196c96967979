// rpc/testing/test_threads.h: runs servers and workers on separate threads, connected by any
// transport, for tests of stores.
#pragma once

#include <kj/async-io.h>
#include <kj/debug.h>
#include <kj/function.h>
#include <kj/mutex.h>
#include <kj/thread.h>
#include <kj/vector.h>

#include "rpc/shard/shard_server.h"
#include "rpc/shared_memory/shared_layout.h"
#include "rpc/shared_memory/shared_memory.h"
#include "rpc/store/remote_store.h"
#include "rpc/testing/test_identity.h"
#include "rpc/testing/test_model.h"
#include "rpc/wire/listener.h"
#include "rpc/wire/peer.h"

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

// One parameter server, at a free port.
class ServerThread {
public:
  // With `restored`, which must outlive the server, the shard continues with that state.
  ServerThread(const Placement& placement, uint shard, const Rounds& rounds, Updater& updater,
      const Transport& transport, kj::Maybe<configs::StateVisitor&> restored = nullptr)
      : thread([this, &placement, shard, rounds, &updater, &transport, restored](
                   kj::AsyncIoContext& io) {
          kj::Maybe<kj::UnixEventPort&> port;
          if (transport.sharesMemory) port = io.unixEventPort;
          auto served = newShardServer(placement, shard, rounds, updater, port);
          KJ_IF_MAYBE(visitor, restored) served.shard.restore(*visitor);
          auto server = kj::mv(served.service);
          *here.lockExclusive() = Here{kj::getCurrentThreadExecutor(), served.shard};
          return Listener::listen(io.provider->getNetwork(), transport)
              .then([this, &io, &placement, server](kj::Own<Listener> listener) mutable {
                *where.lockExclusive() = listener->address();
                auto serving = listener->serve(
                    io.provider->getTimer(), limitsFor(placement), kj::mv(server), testIdentity());
                return serving.attach(kj::mv(listener));
              });
        }) {}

  const ServerAddress& address() const {
    auto lock = where.lockExclusive();
    lock.wait([](const kj::Maybe<const ServerAddress&>& where) { return where != nullptr; });
    return KJ_ASSERT_NONNULL(*lock);
  }

  // Saves the shard, on the server's thread.
  void save(configs::StateVisitor& visitor) {
    auto lock = here.lockExclusive();
    auto& there = KJ_ASSERT_NONNULL(*lock);
    there.executor.executeSync([&]() { there.shard.visitState(visitor); });
  }

private:
  struct Here {
    const kj::Executor& executor;
    Shard& shard;
  };

  kj::MutexGuarded<kj::Maybe<Here>> here;
  kj::MutexGuarded<kj::Maybe<const ServerAddress&>> where;
  LoopThread thread;
};

// Intercepts the connection of a worker: gets the stream to the server, and returns the stream for
// the worker. Called on the worker's io thread.
using Through = kj::Function<kj::Own<kj::AsyncIoStream>(kj::Own<kj::AsyncIoStream>)>;

// The thread that connects a worker's store to servers.
class StoreThread {
public:
  StoreThread(
      RemoteStore& store, const Placement& placement,
      kj::ArrayPtr<const kj::Own<ServerThread>> servers,
      Through through = [](auto stream) { return stream; }, const Transport& transport = TCP)
      : store(store),
        placement(placement),
        transport(transport),
        addresses(addressesOf(servers)),
        through(kj::mv(through)),
        io([this](kj::AsyncIoContext& io) { return talk(io); }) {}

private:
  static kj::Vector<ServerAddress> addressesOf(kj::ArrayPtr<const kj::Own<ServerThread>> servers) {
    kj::Vector<ServerAddress> addresses;
    for (auto& server: servers) {
      auto& address = server->address();
      addresses.add(ServerAddress{kj::str(address.tcp), kj::str(address.local)});
    }
    return addresses;
  }

  kj::Promise<void> talk(kj::AsyncIoContext& io) {
    auto& network = io.provider->getNetwork();
    auto names = KJ_MAP(i, kj::indices(addresses)) {
      return kj::str("server ", i, " at ", addresses[i].tcp);
    };
    auto connect = [this, &network](uint server) {
      return rpc::connect(
          network, addresses[server], transport, testIdentity(), testIdentity().name)
          .then([this](kj::Own<kj::AsyncIoStream>&& stream) {
            return kj::heap<Peer>(through(kj::mv(stream)), limitsFor(placement));
          });
    };
    return store.run({kj::mv(names), kj::mv(connect), io.provider->getTimer(), 5 * kj::SECONDS})
        .catch_([](kj::Exception&&) { /* The compute thread throws the same. */ });
  }

  RemoteStore& store;
  const Placement& placement;
  const Transport& transport;
  kj::Vector<ServerAddress> addresses;
  Through through;
  LoopThread io;
};

// A worker's arrays, its store, and its thread.
struct Worker {
  kj::Maybe<kj::Own<SharedMemory>> memory;
  kj::Array<float> parameters;
  kj::Array<float> gradients;
  kj::Own<RemoteStore> store;
  StoreThread io;

  Worker(
      const Placement& placement, const Rounds& rounds, uint rank,
      kj::ArrayPtr<const kj::Own<ServerThread>> servers,
      Through through = [](auto stream) { return stream; }, const Transport& transport = TCP,
      kj::Maybe<Trace&> trace = nullptr)
      : memory(memoryFor(placement, transport)),
        parameters(kj::heapArray<float>(placement.parameters())),
        gradients(gradientsIn(memory, placement)),
        store(traced(
            RemoteStore::create(placement, rounds, rank, parameters, gradients,
                memory.map([](kj::Own<SharedMemory>& own) -> SharedMemory& { return *own; })),
            trace)),
        io(*store, placement, servers, kj::mv(through), transport) {
    for (auto i: kj::indices(parameters)) parameters[i] = rank == 0 ? noise(99, i, 0) : -1;
  }
  Worker(const Placement& placement, const Rounds& rounds, uint rank,
      kj::ArrayPtr<const kj::Own<ServerThread>> servers, const Transport& transport)
      : Worker(
            placement, rounds, rank, servers, [](auto stream) { return stream; }, transport) {}

private:
  static kj::Maybe<kj::Own<SharedMemory>> memoryFor(
      const Placement& placement, const Transport& transport) {
    if (!transport.sharesMemory) return nullptr;
    return newWorkerMemory(placement);
  }

  static kj::Own<RemoteStore> traced(kj::Own<RemoteStore> store, kj::Maybe<Trace&> trace) {
    KJ_IF_MAYBE(t, trace) store->traceTo(*t);
    return store;
  }

  static kj::Array<float> gradientsIn(
      kj::Maybe<kj::Own<SharedMemory>>& memory, const Placement& placement) {
    KJ_IF_MAYBE(own, memory) {
      auto lie = WorkerLayout(placement).gradients((*own)->bytes());
      return kj::Array<float>(lie.begin(), lie.size(), kj::NullArrayDisposer::instance);
    }
    return kj::heapArray<float>(placement.parameters());
  }
};

// A thread for each server of `placement`.
inline kj::Array<kj::Own<ServerThread>> startServers(const Placement& placement,
    const Rounds& rounds, Updater& updater, const Transport& transport = TCP) {
  return KJ_MAP(shard, kj::indices(placement.shards)) {
    return kj::heap<ServerThread>(placement, shard, rounds, updater, transport);
  };
}

}  // namespace rpc

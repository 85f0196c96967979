#include "tools/bench_kv_roles.h"

#include <kj/async-io.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <kj/mutex.h>
#include <kj/thread.h>
#include <time.h>
#include <unistd.h>

#include "rpc/kv_store.h"
#include "rpc/peer.h"
#include "rpc/shard_server.h"
#include "rpc/shared_layout.h"
#include "rpc/shared_memory.h"
#include "tools/bench_kv_model.h"

namespace tools {
namespace {

// Round trips with gradients of their own in each check, so that none can pass for another.
constexpr uint CHECKED_TRIPS = 3;

uint64_t now_ns() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return uint64_t(now.tv_sec) * 1'000'000'000 + uint64_t(now.tv_nsec);
}

// The stream that the bench has put at a place of this role.
kj::Own<kj::AsyncIoStream> streamAt(kj::AsyncIoContext& io, uint index) {
  return io.lowLevelProvider->wrapSocketFd(kj::AutoCloseFd(FIRST_STREAM + int(index)));
}

// A worker as in training: a thread that computes, one that talks.
class Worker {
public:
  explicit Worker(const KvRole& role)
      : role(role),
        placement(role.kvCase.placement()),
        shared(rpc::SharedMemory::create(
            rpc::WorkerLayout(placement).bytes(), rpc::SharedMemory::WRITE)),
        parameters(kj::heapArray<float>(role.kvCase.floats())),
        gradients(rpc::WorkerLayout(placement).gradients(shared->bytes())),
        store(rpc::RemoteStore::create(placement, role.kvCase.rounds(), role.index, parameters,
            gradients, sharing(role.wire))),
        replay(role.kvCase),
        io([this]() { talk(); }) {
    for (auto i: kj::indices(parameters)) parameters[i] = kvFirstValue(i);
  }
  ~Worker() noexcept(false) {
    auto lock = stop.lockExclusive();
    lock.wait([](const auto& there) { return there != nullptr; });
    KJ_ASSERT_NONNULL(*lock)->fulfill();
  }

  void run() {
    store->initialize();
    carryOutOrders([this]() { trip(); }, [this]() { check(); });
  }

private:
  kj::Maybe<rpc::SharedMemory&> sharing(Wire wire) {
    if (wire != Wire::MEMORY) return nullptr;
    return *shared;
  }

  using Stop = kj::Maybe<kj::Own<kj::CrossThreadPromiseFulfiller<void>>>;

  void talk() {
    auto io = kj::setupAsyncIo();
    auto paf = kj::newPromiseAndCrossThreadFulfiller<void>();
    *stop.lockExclusive() = kj::mv(paf.fulfiller);
    auto names = KJ_MAP(i, kj::indices(placement.shards)) {
      return kj::str("server ", i);
    };
    auto connect = [this, &io](uint server) -> kj::Promise<kj::Own<rpc::Peer>> {
      return kj::heap<rpc::Peer>(streamAt(io, server), rpc::limitsFor(placement));
    };
    store->run({kj::mv(names), connect, io.provider->getTimer(), 60 * kj::SECONDS})
        .catch_([](kj::Exception&&) { /* The compute thread throws the same. */ })
        .exclusiveJoin(kj::mv(paf.promise))
        .wait(io.waitScope);
  }

  // As a training step does: gradients are ready from the last key on, values are needed from the
  // first.
  void trip() {
    uint64_t size = role.kvCase.key_bytes / sizeof(float);
    for (uint key = role.kvCase.keys; key-- > 0;) store->push(step, key * size, (key + 1) * size);
    ++step;
    for (uint key = 0; key < role.kvCase.keys; ++key) {
      store->await(step, key * size, (key + 1) * size);
    }
  }

  void check() {
    replay.advance(seed, step - replayed);
    for (uint i = 0; i < CHECKED_TRIPS; ++i) {
      ++seed;
      for (auto at: kj::indices(gradients)) gradients[at] = kvGradient(role.index, seed, at);
      trip();
      replay.advance(seed, 1);
    }
    replayed = step;
    replay.compare(parameters);
  }

  const KvRole role;
  const rpc::Placement placement;
  kj::Own<rpc::SharedMemory> shared;  // holds the gradients; the servers' too if they get it
  kj::Array<float> parameters;
  kj::ArrayPtr<float> gradients;
  kj::Own<rpc::RemoteStore> store;
  KvReplay replay;
  uint64_t seed = 0;  // of the gradients
  uint64_t step = 0;
  uint64_t replayed = 0;  // steps
  kj::MutexGuarded<Stop> stop{nullptr};
  kj::Thread io;
};

// One shard, until all workers have gone.
void serveShard(const KvRole& role) {
  auto io = kj::setupAsyncIo();
  auto placement = role.kvCase.placement();
  KvUpdater updater(role.kvCase.sgd);
  kj::Maybe<kj::UnixEventPort&> port;
  if (role.wire == Wire::MEMORY) port = io.unixEventPort;
  auto shard = rpc::newShardServer(placement, role.index, role.kvCase.rounds(), updater, port);
  auto serving = KJ_MAP(worker, kj::range(0u, role.kvCase.workers)) {
    return rpc::serve(streamAt(io, worker), rpc::limitsFor(placement), shard);
  };
  kj::joinPromises(kj::mv(serving)).wait(io.waitScope);
}

}  // namespace

void carryOutOrders(kj::FunctionParam<void()> trip, kj::FunctionParam<void()> check) {
  kj::FdInputStream orders(STDIN_FILENO);
  kj::FdOutputStream answers(STDOUT_FILENO);
  KvOrder order;
  while (orders.tryRead(&order, sizeof(order), sizeof(order)) == sizeof(order)) {
    kj::Vector<uint64_t> answer;
    switch (order.what) {
      case KvOrder::TRIPS:
        answer.reserve(order.trips);
        for (uint64_t i = 0; i < order.trips; ++i) {
          uint64_t begin = now_ns();
          trip();
          answer.add(now_ns() - begin);
        }
        break;
      case KvOrder::CHECK:
        check();
        answer.add(0);
        break;
    }
    answers.write(answer.begin(), answer.asPtr().asBytes().size());
  }
}

void runKvRole(kj::ArrayPtr<const kj::StringPtr> words) {
  auto role = readRole(words);
  switch (role.what) {
    case KvRole::WORKER:
      return Worker(role).run();
    case KvRole::SERVER:
      return serveShard(role);
    case KvRole::PROBE:
      return runProbe(role);
    case KvRole::ECHO:
      return runEcho(role);
  }
}

}  // namespace tools

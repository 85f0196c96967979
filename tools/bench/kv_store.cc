#include "tools/bench/kv_store.h"

#include <kj/debug.h>

#include "rpc/shared_memory/shared_layout.h"
#include "rpc/shared_memory/shared_memory.h"
#include "rpc/store/remote_store.h"
#include "tools/bench/kv_model.h"
#include "tools/bench/roles.h"

namespace tools {
namespace {

// Round trips in each check. Each has its own gradients, so that none can pass for another.
constexpr uint CHECKED_TRIPS = 3;

// A worker as in training: one thread computes, and one communicates.
class Worker {
public:
  Worker(const KvCase& kvCase, Wire wire, uint rank)
      : kvCase(kvCase),
        rank(rank),
        placement(kvCase.placement()),
        shared(rpc::SharedMemory::create(
            rpc::WorkerLayout(placement).bytes(), rpc::SharedMemory::WRITE)),
        parameters(kj::heapArray<float>(kvCase.floats())),
        gradients(rpc::WorkerLayout(placement).gradients(shared->bytes())),
        store(rpc::RemoteStore::create(
            placement, kvCase.rounds(), rank, parameters, gradients, sharing(wire))),
        replay(kvCase),
        io(*store, placement, wire == Wire::TLS) {
    for (auto i: kj::indices(parameters)) parameters[i] = kvFirstValue(i);
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

  // As in a training step: gradients are ready from the last key on, and values are needed from the
  // first.
  void trip() {
    uint64_t size = kvCase.key_bytes / sizeof(float);
    for (uint key = kvCase.keys; key-- > 0;) store->push(step, key * size, (key + 1) * size);
    ++step;
    for (uint key = 0; key < kvCase.keys; ++key) {
      store->await(step, key * size, (key + 1) * size);
    }
  }

  void check() {
    replay.advance(seed, step - replayed);
    for (uint i = 0; i < CHECKED_TRIPS; ++i) {
      ++seed;
      for (auto at: kj::indices(gradients)) gradients[at] = kvGradient(rank, seed, at);
      trip();
      replay.advance(seed, 1);
    }
    replayed = step;
    replay.compare(parameters);
  }

  const KvCase& kvCase;
  const uint rank;
  const rpc::Placement placement;
  kj::Own<rpc::SharedMemory> shared;  // holds the gradients; servers on this wire map it too
  kj::Array<float> parameters;
  kj::ArrayPtr<float> gradients;
  kj::Own<rpc::RemoteStore> store;
  KvReplay replay;
  uint64_t seed = 0;  // of the gradients
  uint64_t step = 0;
  uint64_t replayed = 0;  // number of replayed steps
  StoreThread io;
};

}  // namespace

kj::Own<KvSide> startStore(const KvCase& kvCase, Wire wire, KvCores cores) {
  auto side = kj::heap<KvSide>(kj::str(wire, " store"));
  side->addJob(
      kvCase.workers, kvCase.servers, cores,
      // Shared memory is handed over on a Unix socket.
      [&](uint, uint) {
        return wire == Wire::TCP || wire == Wire::TLS ? newTcpStream() : newUnixStream();
      },
      [&](uint rank) { Worker(kvCase, wire, rank).run(); },
      [&](uint shard) {
        KvUpdater updater(kvCase.sgd);
        serveShard(kvCase.placement(), shard, kvCase.rounds(), updater, wire == Wire::MEMORY,
            wire == Wire::TLS);
      });
  return side;
}

}  // namespace tools

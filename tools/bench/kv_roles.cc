#include "tools/bench/kv_roles.h"

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

// A worker as in training: one thread computes, and one talks.
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
        io(*store, placement) {
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

void serve(const KvRole& role) {
  KvUpdater updater(role.kvCase.sgd);
  serveShard(role.kvCase.placement(), role.index, role.kvCase.rounds(), updater,
      role.wire == Wire::MEMORY);
}

}  // namespace

void runKvRole(kj::ArrayPtr<const kj::StringPtr> words) {
  auto role = readRole(words);
  switch (role.what) {
    case KvRole::WORKER:
      return Worker(role).run();
    case KvRole::SERVER:
      return serve(role);
    case KvRole::PROBE:
      return runProbe(role);
    case KvRole::ECHO:
      return runEcho(role);
  }
}

}  // namespace tools

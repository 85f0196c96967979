// A job that is saved, ends, and continues with new shards and stores has the same bits as one
// without the break.
#include <doctest/doctest.h>
#include <kj/debug.h>

#include <cstring>

#include "rpc/store/own_steps.h"
#include "rpc/store/worker_update.h"
#include "rpc/testing/test_model.h"
#include "rpc/testing/test_state.h"
#include "rpc/testing/test_threads.h"

namespace rpc {
namespace {

constexpr uint WORKERS = 2;
constexpr uint SERVERS = 2;
constexpr uint64_t STEPS = 12;
constexpr uint64_t EPOCH_STEPS = 7;

enum class Kind { PLAIN, IN_WORKERS, OWN_STEPS };

struct Way {
  const char* name;
  Kind kind;
  kj::StringPtr mode;
  kj::StringPtr keys;  // of [kvstore]
  const Transport& transport;
};

// A worker's arrays, and its store according to the mode.
struct Trainer {
  kj::Maybe<kj::Own<SharedMemory>> memory;
  kj::Array<float> parameters;
  kj::Array<float> gradients;
  MomentumUpdater updater;
  kj::Own<KvStore> store;

  Trainer(const Way& way, const Placement& placement, const Rounds& rounds, uint rank)
      : parameters(kj::heapArray<float>(placement.parameters())) {
    kj::Maybe<SharedMemory&> shared;
    if (way.transport.sharesMemory) {
      shared = *memory.emplace(newWorkerMemory(placement));
      auto lie = WorkerLayout(placement).gradients(KJ_ASSERT_NONNULL(shared).bytes());
      gradients = kj::Array<float>(lie.begin(), lie.size(), kj::NullArrayDisposer::instance);
    } else {
      gradients = kj::heapArray<float>(placement.parameters());
    }
    for (auto i: kj::indices(parameters)) parameters[i] = rank == 0 ? noise(99, i, 0) : -1;
    switch (way.kind) {
      case Kind::PLAIN:
        store = RemoteStore::create(placement, rounds, rank, parameters, gradients, shared);
        break;
      case Kind::IN_WORKERS:
        store =
            newWorkerUpdateStore(placement, rounds, rank, updater, parameters, gradients, shared);
        break;
      case Kind::OWN_STEPS:
        store =
            newOwnStepsStore(placement, rounds, rank, {3}, updater, parameters, gradients, shared);
        break;
    }
  }

  // Makes the steps from `begin` to `end`, with a rest at the end of each epoch.
  void train(uint rank, uint64_t begin, uint64_t end) {
    for (uint64_t step = begin; step < end; step++) {
      store->await(step, 0, parameters.size());
      for (auto i: kj::indices(gradients)) {
        gradients[i] = noise(rank, i, step) + 0.1f * parameters[i];
      }
      store->push(step, 0, parameters.size());
      if ((step + 1) % EPOCH_STEPS != 0) continue;
      store->rest();
      store->refresh();
    }
  }
};

// The saved state of a job.
struct Saved {
  TestState workers[WORKERS];
  TestState shards[SERVERS];
};

// Makes steps on new shards and stores. Continues from `before` if it is given. Saves to `after` if
// that is given. Returns the parameters of both workers at the end.
kj::Array<kj::Array<float>> run(const Way& way, uint64_t begin, uint64_t end,
    kj::Maybe<const Saved&> before, kj::Maybe<Saved&> after) {
  auto placement = placeBalanced(makeKeys({1000, 10, 5000, 7}), 4096, SERVERS);
  auto rounds = roundsOf(way.mode, WORKERS, way.keys);
  MomentumUpdater momentum;
  SumUpdater sums;
  Updater& updater = way.kind == Kind::IN_WORKERS ? static_cast<Updater&>(sums) : momentum;
  kj::Vector<TestState::Restore> restores;
  KJ_IF_MAYBE(saved, before) {
    for (auto& shard: saved->shards) restores.add(shard);
  }
  auto servers = KJ_MAP(shard, kj::zeroTo(SERVERS)) {
    kj::Maybe<configs::StateVisitor&> restored;
    if (before != nullptr) restored = restores[shard];
    return kj::heap<ServerThread>(placement, shard, rounds, updater, way.transport, restored);
  };
  auto trainers = KJ_MAP(rank, kj::zeroTo(WORKERS)) {
    return kj::heap<Trainer>(way, placement, rounds, rank);
  };
  KJ_IF_MAYBE(saved, before) {
    for (uint rank: kj::zeroTo(WORKERS)) {
      TestState::Restore restore(saved->workers[rank]);
      trainers[rank]->store->visitState(restore);
    }
  }
  auto threads = KJ_MAP(trainer, trainers) {
    auto& remote = KJ_ASSERT_NONNULL(trainer->store->remote());
    return kj::heap<StoreThread>(
        remote, placement, servers, [](auto stream) { return stream; }, way.transport);
  };
  {
    auto computing = KJ_MAP(rank, kj::zeroTo(WORKERS)) {
      return kj::heap<kj::Thread>([&, rank]() {
        auto& trainer = *trainers[rank];
        if (before == nullptr) {
          trainer.store->initialize();
        } else {
          trainer.store->resume();
        }
        trainer.train(rank, begin, end);
        trainer.store->settle();
      });
    };
  }
  KJ_IF_MAYBE(saved, after) {
    for (uint shard: kj::zeroTo(SERVERS)) {
      TestState::Save save(saved->shards[shard]);
      servers[shard]->save(save);
    }
    for (uint rank: kj::zeroTo(WORKERS)) {
      TestState::Save save(saved->workers[rank]);
      trainers[rank]->store->visitState(save);
    }
  }
  threads = nullptr;
  return KJ_MAP(trainer, trainers) {
    return kj::heapArray<float>(trainer->parameters);
  };
}

TEST_CASE("stores: a job that is saved at any step and resumed has the bits of an unbroken one") {
  const Way ways[] = {
      {"tcp", Kind::PLAIN, "dist_sync", nullptr, TCP},
      {"shared memory", Kind::PLAIN, "dist_sync", nullptr, TRANSPORTS[0]},
      {"halves", Kind::PLAIN, "dist_sync", "wire = 'float16'", TCP},
      {"2bit", Kind::PLAIN, "dist_sync", "compression = { kind = '2bit', threshold = 0.5 }", TCP},
      {"1bit", Kind::PLAIN, "dist_sync", "compression = { kind = '1bit' }", TCP},
      {"topk", Kind::PLAIN, "dist_sync",
          "compression = { kind = 'topk', sparsity = 0.9, momentum = 0.9 }", TCP},
      {"updates in workers", Kind::IN_WORKERS, "dist_sync", "update = 'worker'", TCP},
      {"own steps", Kind::OWN_STEPS, "local_sgd", nullptr, TCP},
      {"own steps through shared memory", Kind::OWN_STEPS, "local_sgd", nullptr, TRANSPORTS[0]},
      {"own steps in halves", Kind::OWN_STEPS, "local_sgd", "wire = 'float16'", TCP},
  };
  for (auto& way: ways) {
    CAPTURE(way.name);
    auto unbroken = run(way, 0, STEPS, nullptr, nullptr);
    for (uint64_t broken: {1, 4, 6, 7, 11}) {
      CAPTURE(broken);
      Saved saved;
      run(way, 0, broken, nullptr, saved);
      auto whole = run(way, broken, STEPS, saved, nullptr);
      for (uint rank: kj::zeroTo(WORKERS)) {
        CAPTURE(rank);
        CHECK(memcmp(whole[rank].begin(), unbroken[rank].begin(),
                  unbroken[rank].asBytes().size()) == 0);
      }
    }
  }
}

TEST_CASE("LocalStore: a job that is saved and resumed has the bits of an unbroken one") {
  auto placement = placeBalanced(makeKeys({1000, 10}), 4096, 1);
  auto parameters = kj::heapArray<float>(placement.parameters());
  auto gradients = kj::heapArray<float>(placement.parameters());
  MomentumUpdater updater;
  auto train = [&](KvStore& store, uint64_t begin, uint64_t end) {
    for (uint64_t step = begin; step < end; step++) {
      for (auto i: kj::indices(gradients)) gradients[i] = noise(0, i, step) + parameters[i];
      store.push(step, 0, parameters.size());
    }
  };
  auto newStore = [&]() {
    return newLocalStore(placement, roundsOf("local", 1), updater, parameters, gradients);
  };
  auto begin = [&]() {
    for (auto i: kj::indices(parameters)) parameters[i] = noise(99, i, 0);
    auto store = newStore();
    store->initialize();
    return store;
  };
  train(*begin(), 0, 10);
  auto unbroken = kj::heapArray<float>(parameters);

  TestState state;
  {
    auto store = begin();
    train(*store, 0, 4);
    TestState::Save save(state);
    store->visitState(save);
  }
  for (auto& value: parameters) value = -1;
  auto store = newStore();
  TestState::Restore restore(state);
  store->visitState(restore);
  store->resume();
  CHECK(store->updates() == 4);
  train(*store, 4, 10);
  CHECK(memcmp(parameters.begin(), unbroken.begin(), unbroken.asBytes().size()) == 0);
}

}  // namespace
}  // namespace rpc

#include "rpc/store/worker_update.h"

#include <doctest/doctest.h>

#include <cstring>

#include "rpc/testing/test_model.h"
#include "rpc/testing/test_threads.h"

namespace rpc {
namespace {

// Stands for backward. The gradients depend on the rank, the step and all earlier values.
void makeGradients(
    uint rank, uint64_t step, kj::ArrayPtr<const float> parameters, kj::ArrayPtr<float> gradients) {
  for (auto i: kj::indices(gradients)) gradients[i] = noise(rank, i, step) + 0.1f * parameters[i];
}

// The loop of a worker, with a rest after every three steps.
void train(KvStore& store, kj::ArrayPtr<const Key> keys, uint rank, uint steps,
    kj::ArrayPtr<const float> parameters, kj::ArrayPtr<float> gradients) {
  store.initialize();
  for (uint64_t step = 0; step < steps; step++) {
    for (auto& key: keys) store.await(step, key.offset, key.offset + key.size);
    makeGradients(rank, step, parameters, gradients);
    for (auto i = keys.size(); i-- > 0;) {
      store.push(step, keys[i].offset, keys[i].offset + keys[i].size);
    }
    if (step % 3 == 2) store.rest();
  }
  store.rest();
  store.refresh();
}

kj::Array<float> initialValues(uint64_t size, uint rank) {
  auto values = kj::heapArray<float>(size);
  for (auto i: kj::indices(values)) values[i] = rank == 0 ? noise(99, i, 0) : -1;
  return values;
}

// The parameters of all workers at the end, one after another.
kj::Array<float> trainAll(kj::ArrayPtr<const Key> keys, uint workers, uint servers, bool here) {
  constexpr uint STEPS = 20;
  auto placement = placeBalanced(keys, 4096, servers);
  auto rounds = roundsOf("dist_sync", workers);
  MomentumUpdater updater;
  SumUpdater sum;
  auto threads = startServers(placement, rounds, here ? static_cast<Updater&>(sum) : updater);
  uint64_t size = placement.parameters();
  auto results = kj::heapArray<float>(workers * size);
  {
    auto computing = KJ_MAP(rank, kj::zeroTo(workers)) {
      return kj::heap<kj::Thread>([&, rank]() {
        auto parameters = initialValues(size, rank);
        auto gradients = kj::heapArray<float>(size);
        if (here) {
          auto store =
              newWorkerUpdateStore(placement, rounds, rank, updater, parameters, gradients);
          StoreThread io(KJ_ASSERT_NONNULL(store->remote()), placement, threads);
          train(*store, keys, rank, STEPS, parameters, gradients);
        } else {
          auto store = RemoteStore::create(placement, rounds, rank, parameters, gradients);
          StoreThread io(*store, placement, threads);
          train(*store, keys, rank, STEPS, parameters, gradients);
        }
        memcpy(results.begin() + rank * size, parameters.begin(), parameters.asBytes().size());
      });
    };
  }
  return results;
}

TEST_CASE(
    "WorkerUpdate: workers that make the updates get the same bits as from servers that make "
    "them") {
  auto keys = makeKeys({1000, 10, 5000, 7, 3000, 1, 20000});
  for (uint workers: {1, 3}) {
    CAPTURE(workers);
    auto there = trainAll(keys, workers, 2, false);
    auto here = trainAll(keys, workers, 2, true);
    REQUIRE(there.size() == here.size());
    CHECK(memcmp(there.begin(), here.begin(), here.asBytes().size()) == 0);
    CHECK(here[0] != initialValues(1, 0)[0]);
  }
}

TEST_CASE("WorkerUpdate: is refused if a worker may miss a round") {
  auto placement = placeBalanced(makeKeys({10}), 4096, 1);
  MomentumUpdater updater;
  auto values = initialValues(10, 0);
  for (auto mode: {"dist_async", "dc_asgd"}) {
    CHECK_THROWS(newWorkerUpdateStore(placement, roundsOf(mode, 2), 0, updater, values, values));
  }
}

}  // namespace
}  // namespace rpc

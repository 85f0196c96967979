#include "rpc/store/remote_store.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/mutex.h>
#include <kj/thread.h>

#include <cstring>
#include <utility>

#include "rpc/shard/shard.h"
#include "rpc/testing/test_model.h"
#include "rpc/testing/test_threads.h"

namespace rpc {
namespace {

// Odd sizes put most of the later keys at addresses that cannot be sent by reference; one slice is
// larger than slices that travel together.
kj::Array<Key> oddKeys() {
  auto keys = makeKeys({1000, 10, 5000, 7, 3000, 1, 3, 20000, 10, 70000, 20});
  keys[9].splittable = false;
  return keys;
}

// Stands for a worker's backward. The gradients depend on the rank, the step and all earlier
// values.
void makeGradients(
    uint rank, uint64_t step, kj::ArrayPtr<const float> parameters, kj::ArrayPtr<float> gradients) {
  for (auto i: kj::indices(gradients)) {
    gradients[i] = noise(rank, i, step) + 0.1f * parameters[i];
  }
}

// The loop of a worker: pushes two keys at a time from the last, waits key by key from the first.
void train(KvStore& store, kj::ArrayPtr<const Key> keys, uint rank, uint steps,
    kj::ArrayPtr<const float> parameters, kj::ArrayPtr<float> gradients) {
  store.initialize();
  for (uint64_t step = 0; step < steps; step++) {
    for (auto& key: keys) store.await(step, key.offset, key.offset + key.size);
    makeGradients(rank, step, parameters, gradients);
    for (size_t end = keys.size(); end > 0;) {
      size_t begin = end - kj::min(end, size_t(2));
      store.push(step, keys[begin].offset, keys[end - 1].offset + keys[end - 1].size);
      end = begin;
    }
  }
  store.rest();
  store.refresh();
}

bool same(kj::ArrayPtr<const float> a, kj::ArrayPtr<const float> b) {
  return a.size() == b.size() && memcmp(a.begin(), b.begin(), a.asBytes().size()) == 0;
}

// Replays dist_sync without network or threads.
kj::Array<float> replay(kj::ArrayPtr<const Key> keys, uint workers, uint steps) {
  auto placement = placeBalanced(keys, 1 << 20, 1);
  MomentumUpdater updater;
  Shard shard(placement, 0, roundsOf("dist_sync", workers), updater);
  auto parameters = kj::heapArray<float>(placement.parameters());
  auto gradients = kj::heapArray<float>(workers * placement.parameters());
  for (auto i: kj::indices(parameters)) parameters[i] = noise(99, i, 0);
  for (SliceId id = 0; id < placement.slices.size(); id++) {
    shard.initialize(id, placement.slices[id].of(parameters.asPtr().asConst()));
  }
  for (uint64_t step = 0; step < steps; step++) {
    for (uint rank = 0; rank < workers; rank++) {
      auto own =
          gradients.slice(rank * placement.parameters(), (rank + 1) * placement.parameters());
      makeGradients(rank, step, parameters, own);
      for (SliceId id = 0; id < placement.slices.size(); id++) {
        shard.push(rank, id, step, placement.slices[id].of(own.asConst()));
      }
    }
    for (SliceId id = 0; id < placement.slices.size(); id++) {
      auto lent = shard.lend(0, id);
      memcpy(placement.slices[id].of(parameters.asPtr()).begin(), lent.values.begin(),
          lent.values.asBytes().size());
    }
  }
  return parameters;
}

TEST_CASE("LocalStore: has the same bits as dist_sync with one worker") {
  auto keys = oddKeys();
  auto placement = placeBalanced(keys, 4096, 1);
  MomentumUpdater updater;
  auto parameters = kj::heapArray<float>(placement.parameters());
  auto gradients = kj::heapArray<float>(placement.parameters());
  for (auto i: kj::indices(parameters)) parameters[i] = noise(99, i, 0);
  auto store = newLocalStore(placement, roundsOf("local", 1), updater, parameters, gradients);
  CHECK(store->updates() == 0);
  train(*store, keys, 0, 20, parameters, gradients);
  CHECK(store->updates() == 20);
  CHECK(same(parameters, replay(keys, 1, 20)));
}

// Runs dist_sync with a thread per role. Every worker must have the bits of the replay.
void checkBits(
    kj::ArrayPtr<const Key> keys, uint workers, uint servers, const Transport& transport) {
  constexpr uint STEPS = 20;
  CAPTURE(transport.name);
  CAPTURE(workers);
  CAPTURE(servers);
  auto placement = placeBalanced(keys, 4096, servers);
  auto rounds = roundsOf("dist_sync", workers);
  MomentumUpdater updater;
  auto threads = startServers(placement, rounds, updater, transport);
  auto trained = KJ_MAP(rank, kj::zeroTo(workers)) {
    return kj::heap<Worker>(placement, rounds, rank, threads, transport);
  };
  {
    auto computing = KJ_MAP(rank, kj::zeroTo(workers)) {
      return kj::heap<kj::Thread>([&, rank]() {
        auto& worker = *trained[rank];
        train(*worker.store, keys, rank, STEPS, worker.parameters, worker.gradients);
      });
    };
  }
  auto expected = replay(keys, workers, STEPS);
  for (auto& worker: trained) {
    CHECK(same(worker->parameters, expected));
    CHECK(worker->store->updates() == STEPS);
    uint64_t model = placement.parameters() * sizeof(float);
    uint64_t pushed = 0;
    uint64_t pulled = 0;
    for (auto& traffic: worker->store->traffic()) {
      pushed += traffic.pushed_bytes;
      pulled += traffic.pulled_bytes;
      kj::StringPtr used = traffic.transport;
      CHECK(used == (transport.sharesMemory ? "shared_memory"_kj : kj::StringPtr(transport.name)));
      CHECK(traffic.calls >= STEPS);
      CHECK(traffic.roundTripMax > 0 * kj::NANOSECONDS);
      CHECK((traffic.waitingMax_bytes > 0) == !transport.sharesMemory);
      CHECK(traffic.roundTripMax <= traffic.roundTrips);
      CHECK(traffic.reconnects == 0);
    }
    CHECK(pushed == STEPS * model);
    CHECK(pulled >= (STEPS + 1) * model);
  }
}

TEST_CASE("RemoteStore: only pushes count as calls in the traffic") {
  auto placement = placeBalanced(oddKeys(), 4096, 2);
  auto rounds = roundsOf("dist_sync", 1);
  MomentumUpdater updater;
  auto threads = startServers(placement, rounds, updater);
  Worker worker(placement, rounds, 0, threads);
  worker.store->initialize();
  worker.store->refresh();
  for (auto& traffic: worker.store->traffic()) {
    CHECK(traffic.calls == 0);
    CHECK(traffic.roundTripMax == 0 * kj::NANOSECONDS);
    CHECK(traffic.pulled_bytes > 0);
  }
}

TEST_CASE("RemoteStore: has the bits of a replay over every transport") {
  auto keys = oddKeys();
  for (auto& transport: TRANSPORTS) {
    for (uint workers: {1, 2}) {
      for (uint servers: {1, 2, 3}) checkBits(keys, workers, servers, transport);
    }
  }
}

// MXNet's tests/python/multi-node/dist_sync_kvstore.py: keys 3, 5 and 7 of 2×2 values and 99 of
// 1200×1200, which its servers split, all 1 at first; every worker pushes its rank + 1, three
// times, at rate 2. Nothing here is rounded: the values are exact.
void checkMxnetsTest(uint workers, float expected, const Transport& transport) {
  constexpr uint REPEATS = 3;
  constexpr float RATE = 2;
  CAPTURE(workers);
  CAPTURE(transport.name);
  auto keys = makeKeys({4, 4, 4, 1200 * 1200});
  auto placement = placeBalanced(keys, 1 << 20, 2);
  TestUpdater updater(RATE);
  auto rounds = roundsOf("dist_sync", workers);
  auto servers = startServers(placement, rounds, updater, transport);
  kj::Vector<kj::Own<Worker>> each;
  for (uint rank = 0; rank < workers; ++rank) {
    each.add(kj::heap<Worker>(placement, rounds, rank, servers, transport));
    for (auto& value: each[rank]->parameters) value = 1;
    for (auto& value: each[rank]->gradients) value = rank + 1;
  }
  uint64_t all = placement.parameters();
  {
    kj::Vector<kj::Own<kj::Thread>> threads;
    for (auto& worker: each) {
      threads.add(kj::heap<kj::Thread>([&store = *worker->store, all]() {
        store.initialize();
        for (uint step = 0; step < REPEATS; ++step) {
          store.await(step, 0, all);
          store.push(step, 0, all);
        }
        store.await(REPEATS, 0, all);
      }));
    }
  }
  for (auto& worker: each) {
    uint64_t wrong = 0;
    for (float value: worker->parameters) wrong += value != expected;
    CHECK(wrong == 0);
  }
}

TEST_CASE("RemoteStore: n workers pushing rank + 1, 3 times, at rate 2 give 3 n (n + 1) + 1") {
  for (auto& transport: TRANSPORTS) {
    checkMxnetsTest(2, 19, transport);
    checkMxnetsTest(4, 61, transport);
  }
}

void checkThatEachCountsOnce(const Transport& transport) {
  CAPTURE(transport.name);
  constexpr uint WORKERS = 3;
  constexpr uint STEPS = 50;
  auto keys = makeKeys({5000, 11});
  auto placement = placeBalanced(keys, 4096, 2);
  auto rounds = roundsOf("dist_async", WORKERS);
  TestUpdater updater(1);
  auto threads = startServers(placement, rounds, updater, transport);
  auto workers = KJ_MAP(rank, kj::zeroTo(WORKERS)) {
    return kj::heap<Worker>(placement, rounds, rank, threads, transport);
  };
  for (auto& value: workers[0]->parameters) value = 0;
  bool countedAll[WORKERS] = {};
  {
    auto computing = KJ_MAP(rank, kj::zeroTo(WORKERS)) {
      return kj::heap<kj::Thread>([&, rank]() {
        auto& worker = *workers[rank];
        worker.store->initialize();
        for (auto& value: worker.gradients) value = rank + 1;
        uint64_t updates = worker.store->updates();
        bool counted = updates == 0;
        for (uint64_t step = 0; step < STEPS; step++) {
          worker.store->push(step, 0, 5011);
          worker.store->await(step + 1, 0, 5011);
          auto now = worker.store->updates();
          counted = counted && now > updates && now > step && now <= STEPS * WORKERS;
          updates = now;
        }
        countedAll[rank] = counted;
      });
    };
  }
  // All workers have finished, so refresh() fetches all updates.
  for (auto& worker: workers) {
    worker->store->rest();
    worker->store->refresh();
    CHECK(worker->store->updates() == STEPS * WORKERS);
    float sum = STEPS * WORKERS * (WORKERS + 1) / 2;
    bool exact = true;
    for (auto value: worker->parameters) exact = exact && value == sum;
    CHECK(exact);
  }
  for (bool counted: countedAll) CHECK(counted);
}

TEST_CASE("RemoteStore: in dist_async every gradient of every worker counts once") {
  for (auto& transport: TRANSPORTS) checkThatEachCountsOnce(transport);
}

void checkLoss(const Transport& transport) {
  CAPTURE(transport.name);
  auto keys = makeKeys({5000, 10});
  auto placement = placeBalanced(keys, 4096, 2);
  auto rounds = roundsOf("dist_sync", 2);
  TestUpdater updater(1);
  auto servers = startServers(placement, rounds, updater, transport);
  Worker worker0(placement, rounds, 0, servers, transport);
  Worker worker1(placement, rounds, 1, servers, transport);
  auto name = kj::str("lost server 1 at ", servers[1]->address().tcp);
  kj::String text;
  // Worker 1 has its values, and worker 0 has pushed.
  kj::MutexGuarded<uint> ready(0);
  {
    kj::Thread other([&]() {
      worker1.store->initialize();
      ++*ready.lockExclusive();
    });
    kj::Thread compute([&]() {
      worker0.store->initialize();
      for (auto& value: worker0.gradients) value = 1;
      worker0.store->push(0, 0, 5010);
      ++*ready.lockExclusive();
      // Worker 1 never pushes, so only the loss of the server ends this wait.
      KJ_IF_MAYBE(exception,
          kj::runCatchingExceptions([&]() { worker0.store->await(1, 0, 5010); })) {
        text = kj::str(exception->getDescription());
      }
    });
    ready.lockExclusive().wait([](uint now) { return now == 2; });
    servers[1] = nullptr;
  }
  INFO(text);
  CHECK(strstr(text.cStr(), name.cStr()) != nullptr);
  CHECK(strstr(text.cStr(), "; if it has ended, see what it wrote last") != nullptr);
  CHECK_THROWS(worker0.store->refresh());
}

TEST_CASE(
    "RemoteStore: if a server goes away, a waiting worker throws an error that names the server") {
  for (auto& transport: TRANSPORTS) checkLoss(transport);
}

TEST_CASE(
    "RemoteStore: a worker with memory to share also trains with a server on another machine") {
  auto keys = oddKeys();
  auto placement = placeBalanced(keys, 4096, 2);
  auto rounds = roundsOf("dist_sync", 1);
  MomentumUpdater updater;
  kj::Vector<kj::Own<ServerThread>> servers;
  servers.add(kj::heap<ServerThread>(placement, 0, rounds, updater, TCP));
  servers.add(kj::heap<ServerThread>(placement, 1, rounds, updater, TRANSPORTS[0]));
  Worker worker(placement, rounds, 0, servers, TRANSPORTS[0]);
  train(*worker.store, keys, 0, 20, worker.parameters, worker.gradients);
  CHECK(same(worker.parameters, replay(keys, 1, 20)));
  auto traffic = worker.store->traffic();
  CHECK(kj::StringPtr(traffic[0].transport) == "tcp");
  CHECK(kj::StringPtr(traffic[1].transport) == "shared_memory");
}

TEST_CASE("RemoteStore: if a server refuses, the worker throws its reason") {
  auto placement = placeBalanced(makeKeys({10}), 4096, 1);
  TestUpdater updater(1);
  auto servers = startServers(placement, roundsOf("dist_sync", 2), updater);
  Worker worker(placement, roundsOf("dist_async", 2), 0, servers);
  kj::String text;
  KJ_IF_MAYBE(exception, kj::runCatchingExceptions([&]() { worker.store->initialize(); })) {
    text = kj::str(exception->getDescription());
  }
  CHECK(strstr(text.cStr(), "server 0 at 127.0.0.1:") != nullptr);
  CHECK(strstr(text.cStr(), "different kvstore modes") != nullptr);
}

TEST_CASE("RemoteStore: the error about gradients that cannot be compressed blames no server") {
  auto placement = placeBalanced(makeKeys({10}), 4096, 1);
  TestUpdater updater(1);
  auto rounds = roundsOf("dist_sync", 1, "compression = { kind = '2bit', threshold = 0.5 }");
  auto servers = startServers(placement, rounds, updater);
  Worker worker(placement, rounds, 0, servers);
  worker.store->initialize();
  worker.gradients.asPtr()[3] = kj::nan();
  worker.store->push(0, 0, 10);
  kj::String text;
  KJ_IF_MAYBE(exception, kj::runCatchingExceptions([&]() { worker.store->await(1, 0, 10); })) {
    text = kj::str(exception->getDescription());
  }
  CHECK(text.startsWith("a gradient is not a finite number"));
}

TEST_CASE("RemoteStore: fail() wakes the compute thread, and the first reason stays") {
  auto placement = placeBalanced(makeKeys({10}), 4096, 1);
  auto parameters = kj::heapArray<float>(10);
  auto gradients = kj::heapArray<float>(10);
  auto store = RemoteStore::create(placement, roundsOf("dist_sync", 2), 0, parameters, gradients);
  store->push(0, 0, 10);
  kj::String text;
  {
    // No thread calls run().
    kj::Thread compute([&]() {
      KJ_IF_MAYBE(exception, kj::runCatchingExceptions([&]() { store->await(1, 0, 10); })) {
        text = kj::str(exception->getDescription());
      }
    });
    store->fail(KJ_EXCEPTION(FAILED, "worker 1 was lost"));
    store->fail(KJ_EXCEPTION(FAILED, "something else"));
  }
  CHECK(text == "worker 1 was lost");
  CHECK_THROWS(store->push(1, 0, 10));
}

}  // namespace
}  // namespace rpc

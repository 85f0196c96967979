// Tests that nothing is lost or counts twice when connections are cut in the middle of messages.
#include <doctest/doctest.h>
#include <kj/debug.h>

#include <cstring>

#include "rpc/store/remote_store.h"
#include "rpc/testing/test_cuts.h"
#include "rpc/testing/test_model.h"
#include "rpc/testing/test_threads.h"

namespace rpc {
namespace {

struct Outcome {
  kj::Vector<kj::Array<float>> parameters;  // of each rank, after the last refresh
  uint64_t reconnects = 0;
};

// Runs three epochs of two workers and two servers. With a seed, their connections are cut.
Outcome train(kj::StringPtr mode, Updater& updater, bool depends, kj::Maybe<uint> seed) {
  constexpr uint WORKERS = 2;
  constexpr uint EPOCHS = 3;
  constexpr uint STEPS = 5;
  auto keys = makeKeys({1000, 10, 5000, 7, 40000, 1, 3, 20000});
  auto placement = placeBalanced(keys, 4096, 2);
  auto rounds = roundsOf(mode, WORKERS);
  auto servers = startServers(placement, rounds, updater);
  kj::Vector<kj::Own<Worker>> workers;
  for (uint rank = 0; rank < WORKERS; rank++) {
    KJ_IF_MAYBE(s, seed) {
      workers.add(kj::heap<Worker>(placement, rounds, rank, servers, cutting(*s, rank, 2'000'000)));
    } else {
      workers.add(kj::heap<Worker>(placement, rounds, rank, servers));
    }
  }
  for (auto& value: workers[0]->parameters) value = 0;
  // All workers rest before any of them refreshes.
  kj::MutexGuarded<uint> resting(0u);
  {
    kj::Vector<kj::Own<kj::Thread>> computing;
    for (uint rank = 0; rank < WORKERS; rank++) {
      computing.add(kj::heap<kj::Thread>([&, rank]() {
        auto& worker = *workers[rank];
        worker.store->initialize();
        for (uint64_t step = 0; step < EPOCHS * STEPS; step++) {
          for (auto& key: keys) worker.store->await(step, key.offset, key.offset + key.size);
          for (auto i: kj::indices(worker.gradients)) {
            worker.gradients[i] =
                depends ? noise(rank, i, step) + 0.1f * worker.parameters[i] : rank + 1;
          }
          for (size_t k = keys.size(); k-- > 0;) {
            worker.store->push(step, keys[k].offset, keys[k].offset + keys[k].size);
          }
          if ((step + 1) % STEPS > 0) continue;
          worker.store->rest();
          uint all = (step + 1) / STEPS * WORKERS;
          ++*resting.lockExclusive();
          resting.lockExclusive().wait([all](uint now) { return now >= all; });
          worker.store->refresh();
        }
      }));
    }
  }
  Outcome outcome;
  for (auto& worker: workers) {
    for (auto& traffic: worker->store->traffic()) outcome.reconnects += traffic.reconnects;
    outcome.parameters.add(kj::heapArray<float>(worker->parameters));
  }
  return outcome;
}

void checkSame(const Outcome& cut, const Outcome& whole) {
  for (auto rank: kj::indices(whole.parameters)) {
    auto expected = whole.parameters[rank].asBytes();
    CHECK(memcmp(cut.parameters[rank].begin(), expected.begin(), expected.size()) == 0);
  }
}

TEST_CASE("RemoteStore: dist_sync has the same bits after cut connections") {
  MomentumUpdater updater;
  auto whole = train("dist_sync", updater, true, nullptr);
  CHECK(whole.reconnects == 0);
  for (uint seed = 0; seed < 8; seed++) {
    CAPTURE(seed);
    auto cut = train("dist_sync", updater, true, seed);
    CHECK(cut.reconnects > 0);
    checkSame(cut, whole);
  }
}

TEST_CASE(
    "RemoteStore: the trace shows a push that is repeated after a cut as sent and returned once") {
  constexpr uint STEPS = 5;
  auto keys = makeKeys({1000, 10, 40000});
  auto placement = placeBalanced(keys, 4096, 2);
  auto rounds = roundsOf("dist_sync", 1);
  TestUpdater updater(1);
  uint64_t reconnects = 0;
  for (uint seed = 0; seed < 4; seed++) {
    CAPTURE(seed);
    Trace trace({});
    {
      auto servers = startServers(placement, rounds, updater);
      Worker worker(placement, rounds, 0, servers, cutting(seed, 0, 500'000), TCP, trace);
      for (auto& value: worker.gradients) value = 1;
      worker.store->initialize();
      for (uint64_t step = 0; step < STEPS; step++) {
        worker.store->await(step, 0, placement.parameters());
        worker.store->push(step, 0, placement.parameters());
      }
      worker.store->rest();
      for (auto& traffic: worker.store->traffic()) reconnects += traffic.reconnects;
    }
    // Per slice and step: how often it was sent, and how often it returned.
    struct Count {
      uint sent = 0;
      uint returned = 0;
    };
    auto counts = kj::heapArray<Count>(placement.slices.size() * STEPS);
    for (auto& event: trace.io.all()) {
      auto& count = counts[event.item * STEPS + event.step];
      ++(event.point == TracePoint::SENT ? count.sent : count.returned);
    }
    for (auto& count: counts) {
      CHECK(count.sent == 1);
      CHECK(count.returned == 1);
    }
  }
  CHECK(reconnects > 0);
}

TEST_CASE("RemoteStore: every gradient counts exactly once, even if connections are cut") {
  TestUpdater updater(1);
  for (auto mode: {"dist_async"_kj, "dist_ssp"_kj}) {
    CAPTURE(mode);
    for (uint seed = 0; seed < 8; seed++) {
      CAPTURE(seed);
      auto cut = train(mode, updater, false, seed);
      CHECK(cut.reconnects > 0);
      // 15 steps of gradients 1 and 2.
      for (auto& parameters: cut.parameters) {
        uint64_t wrong = 0;
        for (float value: parameters) wrong += value != 45;
        CHECK(wrong == 0);
      }
    }
  }
}

}  // namespace
}  // namespace rpc

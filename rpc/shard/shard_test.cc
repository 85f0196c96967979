#include "rpc/shard/shard.h"

#include <doctest/doctest.h>
#include <kj/debug.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "rpc/testing/test_model.h"

namespace rpc {
namespace {

kj::Array<float> filled(uint64_t size, float value) {
  auto values = kj::heapArray<float>(size);
  for (auto& v: values) v = value;
  return values;
}

// Worker `rank`'s gradient of a slice at a step: numbers whose sums depend on the order of
// addition.
kj::Array<float> gradientOf(uint rank, const Slice& slice, uint64_t step) {
  auto gradient = kj::heapArray<float>(slice.size);
  for (auto i: kj::indices(gradient)) gradient[i] = noise(rank, slice.offset + i, step);
  return gradient;
}

void initialize(Shard& shard, const Placement& placement, uint index, float value) {
  for (auto id: placement.shards[index]) {
    shard.initialize(id, filled(placement.slices[id].size, value));
  }
}

bool same(kj::ArrayPtr<const float> a, kj::ArrayPtr<const float> b) {
  return a.size() == b.size() && memcmp(a.begin(), b.begin(), a.asBytes().size()) == 0;
}

uint64_t versionOf(const Shard& shard, SliceId id) {
  return KJ_ASSERT_NONNULL(shard.version(id));
}

TEST_CASE("Shard: n workers pushing rank + 1, r times, at rate t give t r n (n + 1) / 2 + 1") {
  constexpr float RATE = 2;
  constexpr uint REPEATS = 3;
  // Below, at and above the slice size of 1,024 values; most not divisible by the number of
  // servers.
  auto keys = makeKeys({4, 1023, 1024, 1025, 4, 1, 48 * 1024 + 7, 4, 10});
  for (uint workers: {1, 2, 3, 4, 7}) {
    for (uint servers: {1, 2, 3, 5}) {
      CAPTURE(workers);
      CAPTURE(servers);
      auto placement = placeBalanced(keys, 4096, servers);
      TestUpdater updater(RATE);
      for (uint server = 0; server < servers; server++) {
        Shard shard(placement, server, roundsOf("dist_sync", workers), updater);
        initialize(shard, placement, server, 1);
        for (auto id: placement.shards[server]) {
          uint64_t size = placement.slices[id].size;
          for (uint step = 0; step < REPEATS; step++) {
            kj::Vector<kj::Array<float>> gradients;
            for (uint rank = 0; rank < workers; rank++) {
              gradients.add(filled(size, rank + 1));
              shard.push(rank, id, step, gradients.back());
            }
          }
          float expected = RATE * REPEATS * workers * (workers + 1) / 2 + 1;
          auto lent = shard.lend(0, id);
          CHECK(lent.version == REPEATS);
          CHECK(same(lent.values, filled(size, expected)));
        }
      }
    }
  }
}

TEST_CASE("Shard: the bits do not depend on the order of arrival") {
  constexpr uint WORKERS = 5;
  constexpr uint STEPS = 4;
  auto placement = placeBalanced(makeKeys({100, 33, 1}), 4096, 1);
  auto& slices = placement.slices;

  auto run = [&](uint seed) {
    MomentumUpdater updater;
    Shard shard(placement, 0, roundsOf("dist_sync", WORKERS), updater);
    initialize(shard, placement, 0, 0.5);
    std::mt19937 random(seed);
    for (uint64_t step = 0; step < STEPS; step++) {
      struct Push {
        uint rank;
        SliceId id;
        kj::Array<float> gradient;
      };
      kj::Vector<Push> pushes;
      for (uint rank = 0; rank < WORKERS; rank++) {
        for (SliceId id = 0; id < slices.size(); id++) {
          pushes.add(Push{rank, id, gradientOf(rank, slices[id], step)});
        }
      }
      if (seed > 0) std::shuffle(pushes.begin(), pushes.end(), random);
      for (auto& push: pushes) shard.push(push.rank, push.id, step, push.gradient);
    }
    kj::Vector<float> result;
    for (SliceId id = 0; id < slices.size(); id++) {
      CHECK(versionOf(shard, id) == STEPS);
      result.addAll(shard.lend(0, id).values);
    }
    return result.releaseAsArray();
  };

  auto inOrder = run(0);
  for (uint seed = 1; seed <= 200; seed++) REQUIRE(same(run(seed), inOrder));

  // Checks that the order of addition makes a difference. Otherwise this test would prove nothing.
  auto forward = filled(100, 0);
  auto backward = filled(100, 0);
  for (uint rank = 0; rank < WORKERS; rank++) {
    auto a = gradientOf(rank, slices[0], 0);
    auto b = gradientOf(WORKERS - 1 - rank, slices[0], 0);
    for (uint i = 0; i < 100; i++) {
      forward[i] += a[i];
      backward[i] += b[i];
    }
  }
  CHECK(!same(forward, backward));
}

TEST_CASE("Shard: a round waits for every rank, however often one of them pushes") {
  auto placement = placeBalanced(makeKeys({10}), 4096, 1);
  TestUpdater updater(1);
  Shard shard(placement, 0, roundsOf("dist_sync", 3), updater);
  initialize(shard, placement, 0, 0);
  auto one = filled(10, 1);
  auto ten = filled(10, 10);
  for (uint i = 0; i < 5; i++) CHECK(shard.push(2, 0, 0, one) == 1);
  CHECK(shard.push(0, 0, 0, one) == 1);
  CHECK(shard.push(0, 0, 0, ten) == 1);
  CHECK(versionOf(shard, 0) == 0);
  CHECK(shard.push(1, 0, 0, one) == 1);
  CHECK(versionOf(shard, 0) == 1);
  CHECK(shard.lend(0, 0).values[0] == 3);

  SUBCASE("a step of an earlier round is not counted again") {
    CHECK(shard.push(0, 0, 0, ten) == 1);
    CHECK(versionOf(shard, 0) == 1);
    CHECK(shard.lend(0, 0).values[0] == 3);
    for (uint rank = 0; rank < 3; rank++) shard.push(rank, 0, 1, one);
    CHECK(shard.lend(0, 0).values[0] == 6);
  }
  SUBCASE("a step beyond the round is refused and changes nothing") {
    CHECK_THROWS(shard.push(0, 0, 2, ten));
    shard.push(0, 0, 1, one);
    CHECK_THROWS(shard.push(0, 0, 2, ten));
    shard.push(1, 0, 1, one);
    shard.push(2, 0, 1, one);
    CHECK(shard.lend(0, 0).values[0] == 6);
  }
}

TEST_CASE("Shard: in dist_async every push is a round, and repeated pushes do not count") {
  auto placement = placeBalanced(makeKeys({10}), 4096, 1);
  TestUpdater updater(1);
  Shard shard(placement, 0, roundsOf("dist_async", 2), updater);
  initialize(shard, placement, 0, 0);
  auto one = filled(10, 1);
  CHECK(shard.push(1, 0, 0, one) == 1);
  CHECK(shard.push(1, 0, 1, one) == 2);
  CHECK(shard.push(1, 0, 0, one) == 2);
  CHECK(shard.push(1, 0, 1, one) == 2);
  CHECK(shard.push(0, 0, 0, one) == 3);
  CHECK(shard.lend(0, 0).values[9] == 3);
  CHECK_THROWS(shard.push(0, 0, 2, one));
  CHECK(versionOf(shard, 0) == 3);
}

// Keeps the latest staleness.
class StalenessKeeper final: public Updater {
public:
  uint stateArrays(const Slice&) const override { return 0; }
  void update(const Slice&, const Round& round, kj::ArrayPtr<const float>, kj::ArrayPtr<float>,
      kj::ArrayPtr<float>) override {
    staleness = round.staleness;
  }

  uint64_t staleness = 0;
};

TEST_CASE("Shard: an update gets the staleness of a push only if `staleness_aware` is set") {
  auto placement = placeBalanced(makeKeys({1}), 4096, 1);
  for (bool aware: {false, true}) {
    StalenessKeeper updater;
    auto rounds = roundsOf("dist_async", 2, aware ? "staleness_aware = true"_kj : nullptr);
    Shard shard(placement, 0, rounds, updater);
    initialize(shard, placement, 0, 0);
    auto one = filled(1, 1);
    shard.push(0, 0, 0, one);
    CHECK(updater.staleness == 0);
    // Computed on the values before that update.
    shard.push(1, 0, 0, one);
    CHECK(updater.staleness == (aware ? 1 : 0));
    // The push counts in both cases.
    CHECK(shard.counts().staleness[1] == 1);
  }
}

TEST_CASE("Shard: lent values keep their bytes during further rounds") {
  constexpr uint WORKERS = 4;
  auto placement = placeBalanced(makeKeys({100}), 4096, 1);
  MomentumUpdater updater;
  Shard shard(placement, 0, roundsOf("dist_async", WORKERS), updater);
  initialize(shard, placement, 0, 1);

  struct Loan {
    Shard::Lent lent;
    kj::Array<float> copy;
  };
  kj::Vector<Loan> loans;
  for (uint rank = 0; rank < WORKERS; rank++) {
    auto lent = shard.lend(rank, 0);
    loans.add(Loan{lent, kj::heapArray(lent.values)});
  }
  std::mt19937 random(1);
  kj::Vector<const float*> seen;
  uint64_t steps[WORKERS] = {};
  for (uint i = 0; i < 500; i++) {
    uint rank = random() % (WORKERS - 1);  // the last one never comes back
    auto gradient = gradientOf(rank, placement.slices[0], steps[rank]);
    shard.push(rank, 0, steps[rank]++, gradient);
    auto lent = shard.lend(rank, 0);
    loans[rank] = Loan{lent, kj::heapArray(lent.values)};
    for (auto& loan: loans) REQUIRE(same(loan.lent.values, loan.copy));
    if (std::find(seen.begin(), seen.end(), lent.values.begin()) == seen.end()) {
      seen.add(lent.values.begin());
    }
  }
  CHECK(loans[WORKERS - 1].lent.version == 0);
  // Buffers are reused: there are at most one per worker and one to write.
  CHECK(seen.size() <= WORKERS + 1);
}

TEST_CASE("Shard: in dist_sync two buffers per slice are enough") {
  auto placement = placeBalanced(makeKeys({10}), 4096, 1);
  TestUpdater updater(1);
  Shard shard(placement, 0, roundsOf("dist_sync", 3), updater);
  initialize(shard, placement, 0, 0);
  auto one = filled(10, 1);
  kj::Vector<const float*> seen;
  for (uint64_t step = 0; step < 10; step++) {
    for (uint rank = 0; rank < 3; rank++) shard.push(rank, 0, step, one);
    for (uint rank = 0; rank < 3; rank++) {
      auto at = shard.lend(rank, 0).values.begin();
      if (std::find(seen.begin(), seen.end(), at) == seen.end()) seen.add(at);
    }
  }
  CHECK(seen.size() == 2);
}

TEST_CASE("Shard: initial values may be repeated before the first round, if they are the same") {
  auto placement = placeBalanced(makeKeys({10}), 4096, 1);
  TestUpdater updater(1);
  Shard shard(placement, 0, roundsOf("dist_sync", 1), updater);
  shard.initialize(0, filled(10, 1));
  shard.initialize(0, filled(10, 1));
  CHECK(shard.isInitialized());
  CHECK(shard.lend(0, 0).values[9] == 1);
  shard.push(0, 0, 0, filled(10, 1));
  CHECK_THROWS(shard.initialize(0, filled(10, 2)));
}

TEST_CASE("Shard: wrong arguments are refused") {
  auto placement = placeBalanced(makeKeys({10, 20}), 4096, 2);
  TestUpdater updater(1);
  SliceId mine = placement.shards[0][0];
  SliceId other = placement.shards[1][0];
  uint64_t size = placement.slices[mine].size;
  Shard shard(placement, 0, roundsOf("dist_sync", 2), updater);
  auto gradient = filled(size, 1);

  CHECK(shard.version(mine) == nullptr);
  CHECK_THROWS(shard.push(0, mine, 0, gradient));
  CHECK_THROWS(shard.lend(0, mine));
  CHECK_THROWS(shard.initialize(mine, filled(size - 1, 1)));
  CHECK(!shard.isInitialized());
  shard.initialize(mine, filled(size, 1));
  CHECK(shard.isInitialized());
  CHECK_THROWS(shard.initialize(mine, filled(size, 2)));
  CHECK_THROWS(shard.push(2, mine, 0, gradient));
  CHECK_THROWS(shard.push(0, other, 0, gradient));
  CHECK_THROWS(shard.push(0, 99, 0, gradient));
  CHECK_THROWS(shard.push(0, mine, 0, filled(size + 1, 1)));
  CHECK_THROWS(shard.lend(2, mine));
  CHECK_THROWS(shard.lend(0, other));
  CHECK(versionOf(shard, mine) == 0);
}

}  // namespace
}  // namespace rpc

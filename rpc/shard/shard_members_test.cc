// The members of a job change while a shard has rounds in progress.
#include <doctest/doctest.h>

#include <cstring>
#include <random>

#include "rpc/shard/shard.h"
#include "rpc/testing/test_model.h"

namespace rpc {
namespace {

kj::Array<float> filled(uint64_t size, float value) {
  auto values = kj::heapArray<float>(size);
  for (auto& v: values) v = value;
  return values;
}

kj::Array<float> gradientOf(uint rank, const Slice& slice, uint64_t step) {
  auto gradient = kj::heapArray<float>(slice.size);
  for (auto i: kj::indices(gradient)) gradient[i] = noise(rank, slice.offset + i, step);
  return gradient;
}

bool same(kj::ArrayPtr<const float> a, kj::ArrayPtr<const float> b) {
  return a.size() == b.size() && memcmp(a.begin(), b.begin(), a.asBytes().size()) == 0;
}

uint64_t versionOf(const Shard& shard, SliceId id) {
  return KJ_ASSERT_NONNULL(shard.version(id));
}

// Adds the sum, divided by its number of pushes, and remembers this number.
class MeanUpdater final: public Updater {
public:
  uint stateArrays(const Slice&) const override { return 0; }
  void update(const Slice& slice, const Round& round, kj::ArrayPtr<const float> current,
      kj::ArrayPtr<float> next, kj::ArrayPtr<float>) override {
    for (auto i: kj::indices(next)) next[i] = current[i] + round.gradientSum[i] / round.divisor;
    divisors.add(round.divisor);
  }

  kj::Vector<uint> divisors;
};

TEST_CASE("Shard: when a worker leaves, a round without its push is the mean of the others") {
  auto placement = placeBalanced(makeKeys({2, 3}), 4096, 1);
  MeanUpdater updater;
  Shard shard(placement, 0, roundsOf("dist_sync", 3), updater);
  for (SliceId id: {0, 1}) shard.initialize(id, filled(placement.slices[id].size, 0));
  // Worker 2 has pushed slice 1 but not slice 0.
  auto slice0 = [&](float value) { return filled(2, value); };
  auto first = slice0(1), second = slice0(3);
  auto other = filled(3, 6);
  shard.push(0, 0, 0, first);
  shard.push(1, 0, 0, second);
  shard.push(0, 1, 0, other);
  shard.push(2, 1, 0, other);
  shard.fence(2);
  CHECK_THROWS(shard.push(2, 0, 0, first));
  CHECK(versionOf(shard, 0) == 0);
  auto pushed = shard.pushedBy(2);
  CHECK(pushed[0].steps == 0);
  CHECK(pushed[1].steps == 1);

  shard.leave(2);
  CHECK(versionOf(shard, 0) == 1);
  CHECK(same(shard.lend(0, 0).values, slice0(2)));
  // Slice 1 still waits for worker 1, and then has the pushes of all three.
  CHECK(versionOf(shard, 1) == 0);
  shard.push(1, 1, 0, other);
  CHECK(same(shard.lend(0, 1).values, other));
  CHECK(updater.divisors[0] == 2);
  CHECK(updater.divisors[1] == 3);

  // The next round takes two pushes.
  shard.lend(1, 1);
  shard.push(0, 1, 1, other);
  shard.push(1, 1, 1, other);
  CHECK(versionOf(shard, 1) == 2);
  CHECK(updater.divisors[2] == 2);
  CHECK_THROWS(shard.lend(2, 1));
}

TEST_CASE("Shard: the last member cannot leave, and stays one") {
  auto placement = placeBalanced(makeKeys({2}), 4096, 1);
  MeanUpdater updater;
  Shard shard(placement, 0, roundsOf("dist_sync", 2), updater);
  shard.initialize(0, filled(2, 0));
  shard.leave(1);
  shard.leave(1);
  CHECK_THROWS(shard.leave(0));
  CHECK_THROWS(shard.leave(0));
  CHECK(shard.push(0, 0, 0, filled(2, 4)) == 1);
  CHECK(same(shard.lend(0, 0).values, filled(2, 4)));
}

TEST_CASE("Shard: a worker can join only between two steps") {
  auto placement = placeBalanced(makeKeys({2}), 4096, 1);
  MeanUpdater updater;
  Shard shard(placement, 0, roundsOf("dist_sync", 2), updater);
  shard.leave(1);
  shard.initialize(0, filled(2, 0));
  auto gradient = filled(2, 4);
  CHECK(shard.push(0, 0, 0, gradient) == 1);
  CHECK_THROWS(shard.admit(1, 0));
  shard.admit(1, 1);
  CHECK_THROWS(shard.admit(1, 1));
  shard.lend(1, 0);
  shard.lend(0, 0);
  shard.push(0, 0, 1, gradient);
  CHECK_THROWS(shard.admit(0, 1));
  CHECK(versionOf(shard, 0) == 1);
  shard.push(1, 0, 1, gradient);
  CHECK(versionOf(shard, 0) == 2);
  CHECK(updater.divisors[0] == 1);
  CHECK(updater.divisors[1] == 2);
}

TEST_CASE("Shard: in modes where each push is a round, nobody waits for a worker that has left") {
  auto placement = placeBalanced(makeKeys({2}), 4096, 1);
  MeanUpdater updater;
  auto rounds = roundsOf("dist_ssp", 3);
  rounds.staleness = 1;
  Shard shard(placement, 0, rounds, updater);
  shard.initialize(0, filled(2, 0));
  for (uint rank: {0, 1, 2}) shard.lend(rank, 0);
  auto gradient = filled(2, 3);
  // Worker 0 is two steps ahead of worker 2.
  uint64_t due = 0;
  for (uint64_t step: {0, 1}) {
    shard.push(1, 0, step, gradient);
    shard.lend(1, 0);
    due = shard.push(0, 0, step, gradient);
    shard.lend(0, 0);
  }
  CHECK(shard.progress(0) < due);
  shard.fence(2);
  CHECK_THROWS(shard.push(2, 0, 0, gradient));
  CHECK(shard.pushedBy(2)[0].steps == 0);
  CHECK(shard.progress(0) < due);
  shard.leave(2);
  CHECK(shard.progress(0) >= due);
  CHECK(shard.counts().pushed == 4);
  // A push keeps the weight that it had.
  CHECK(updater.divisors.back() == 3);

  // The rest is over when the two others rest.
  shard.rest(0, 0);
  shard.rest(1, 0);
  CHECK_THROWS(shard.admit(2, 1));
  shard.admit(2, 2);
  for (uint rank: {0, 1, 2}) shard.lend(rank, 0);
  shard.push(0, 0, 2, gradient);
  shard.lend(0, 0);
  due = shard.push(0, 0, 3, gradient);
  CHECK(shard.progress(0) < due);
  shard.push(2, 0, 2, gradient);
  CHECK(shard.progress(0) < due);
  shard.push(1, 0, 2, gradient);
  CHECK(shard.progress(0) >= due);

  // A worker that rests and then leaves no longer counts as resting.
  shard.lend(1, 0);
  shard.lend(2, 0);
  shard.rest(2, 1);
  shard.leave(2);
  shard.rest(0, 1);
  shard.rest(1, 1);
  CHECK_THROWS(shard.rest(1, 3));
  shard.rest(1, 2);
}

// One worker of a job whose members change.
struct TestWorker {
  bool isMember = true;
  uint64_t step = 0;
  kj::Array<bool> pushed;                // of `step`, per slice
  kj::Vector<kj::Array<float>> holding;  // gradients that a shard may refer to
};

TEST_CASE(
    "Shard: if workers are lost at any moment, each round is the mean of the received pushes") {
  for (uint seed = 0; seed < 300; seed++) {
    CAPTURE(seed);
    std::mt19937 dice(seed);
    constexpr uint WORKERS = 4;
    auto placement = placeBalanced(makeKeys({5, 3, 1}), 4096, 1);
    auto& slices = placement.slices;
    MeanUpdater updater;
    Shard shard(placement, 0, roundsOf("dist_sync", WORKERS), updater);
    // Per slice: the expected values, and the ranks that have pushed to the open round.
    kj::Vector<kj::Array<float>> wanted;
    for (SliceId id = 0; id < slices.size(); id++) {
      wanted.add(filled(slices[id].size, 1));
      shard.initialize(id, wanted.back());
    }
    TestWorker workers[WORKERS];
    bool isIn[8][WORKERS] = {};
    uint64_t versions[8] = {};
    for (auto& worker: workers) {
      worker.pushed = kj::heapArray<bool>(slices.size());
      for (auto& flag: worker.pushed) flag = false;
    }
    auto closeIfFull = [&](SliceId id) {
      uint count = 0;
      for (uint rank = 0; rank < WORKERS; rank++) {
        if (workers[rank].isMember && !isIn[id][rank]) return;
        count += isIn[id][rank];
      }
      if (count == 0) return;
      kj::Array<float> sum;
      for (uint rank = 0; rank < WORKERS; rank++) {
        if (!isIn[id][rank]) continue;
        auto gradient = gradientOf(rank, slices[id], versions[id]);
        if (sum == nullptr) {
          sum = kj::mv(gradient);
        } else {
          for (auto i: kj::indices(sum)) sum[i] += gradient[i];
        }
        isIn[id][rank] = false;
      }
      for (auto i: kj::indices(sum)) wanted[id][i] += sum[i] / count;
      versions[id]++;
    };
    uint members = WORKERS;
    for (uint turn = 0; turn < 200; turn++) {
      uint rank = dice() % WORKERS;
      auto& worker = workers[rank];
      if (!worker.isMember) continue;
      if (members > 1 && dice() % 60 == 0) {
        shard.fence(rank);
        for (auto& each: shard.pushedBy(rank)) {
          CHECK(each.steps == worker.step + (worker.pushed[each.id] ? 1 : 0));
        }
        shard.leave(rank);
        worker.isMember = false;
        members--;
        for (SliceId id = 0; id < slices.size(); id++) closeIfFull(id);
        continue;
      }
      // A worker begins a step when all slices of the previous step are answered.
      SliceId id = dice() % slices.size();
      if (worker.pushed[id]) {
        bool isDone = true;
        for (SliceId each = 0; each < slices.size(); each++) {
          isDone = isDone && worker.pushed[each] && shard.progress(each) > worker.step;
        }
        if (!isDone) continue;
        for (SliceId each = 0; each < slices.size(); each++) {
          CHECK(same(shard.lend(rank, each).values, wanted[each]));
          worker.pushed[each] = false;
        }
        worker.step++;
      }
      worker.holding.add(gradientOf(rank, slices[id], worker.step));
      shard.push(rank, id, worker.step, worker.holding.back());
      worker.pushed[id] = true;
      isIn[id][rank] = true;
      closeIfFull(id);
      CHECK(versionOf(shard, id) == versions[id]);
    }
  }
}

}  // namespace
}  // namespace rpc

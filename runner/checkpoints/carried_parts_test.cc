#include "runner/checkpoints/carried_parts.h"

#include <doctest/doctest.h>
#include <kj/debug.h>

#include <cstring>

#include "tests/text.h"

namespace runner {
namespace {

constexpr uint SLICE_BYTES = 64;  // 16 floats
constexpr uint64_t KEYS[] = {40, 7, 33};

rpc::Placement placementFor(uint shards) {
  kj::Vector<rpc::Key> keys;
  uint64_t offset = 0;
  for (auto size: KEYS) {
    keys.add(rpc::Key{kj::str("key", keys.size()), offset, size});
    offset += size;
  }
  return rpc::place(keys, SLICE_BYTES, shards, rpc::PLACEMENTS[0]);
}

kj::Array<kj::byte> bytesOf(const SavedPart& part) {
  auto bytes = kj::heapArray<kj::byte>(part.size());
  part.copy(0, bytes);
  return bytes;
}

template <typename T>
kj::Array<T> valuesIn(kj::ArrayPtr<const kj::byte> part, kj::StringPtr name) {
  for (auto& tensor: tensorsIn(part)) {
    if (tensor.name != name) continue;
    auto values = kj::heapArray<T>(tensor.values.size() / sizeof(T));
    memcpy(values.begin(), tensor.values.begin(), tensor.values.size());
    return values;
  }
  KJ_FAIL_REQUIRE("no such array", name);
}

bool has(kj::ArrayPtr<const kj::byte> part, kj::StringPtr name) {
  for (auto& tensor: tensorsIn(part)) {
    if (tensor.name == name) return true;
  }
  return false;
}

constexpr float UNSENT[][3] = {{1e8f, 0.1f, -3}, {1, 0.2f, 5}, {-1e8f, 0.3f, 1e-9f}};

// Returns the part that worker `rank` has saved. Its residuals, momentum and counts are its own.
kj::Array<kj::byte> worker(uint rank) {
  PartSaver saver(0);
  float parameters[] = {1, 2, 3};
  uint64_t taken = 4;
  if (rank == 0) {
    saver.floats("best.weights", parameters);
    saver.floats("average.values", parameters);
    saver.count("average.taken", taken);
    saver.count("average.step", taken);
  }
  float unsent[3];
  memcpy(unsent, UNSENT[rank], sizeof(unsent));
  saver.floats("store.unsent", unsent);
  float velocities[] = {float(rank) + 1};
  saver.floats("store.velocities", velocities);
  float optimizer[] = {float(rank) + 10};
  saver.floats("store.optimizer", optimizer);
  uint64_t steps = 30;
  saver.count("store.steps", steps);
  uint64_t traffic[] = {rank + 1, 2, 3, 4, 5, 6, 7};
  saver.counts("store.traffic.0", traffic);
  saver.counts("store.traffic.1", traffic);
  Note notes[] = {{"plan"_kj, kj::str("of ", rank)}};
  return bytesOf(saver.finish(notes));
}

struct Workers {
  explicit Workers(uint count) {
    for (uint rank = 0; rank < count; rank++) {
      owned.add(worker(rank));
      parts.add(owned.back());
    }
  }
  kj::Array<kj::Array<kj::byte>> as(uint workers, uint shards) const {
    auto placement = placementFor(shards);
    auto carried = carriedWorkers(parts, workers, placement);
    return KJ_MAP(part, carried) {
      return bytesOf(part);
    };
  }

  kj::Vector<kj::Array<kj::byte>> owned;
  kj::Vector<kj::ArrayPtr<const kj::byte>> parts;
};

TEST_CASE("carriedWorkers: residuals are added in rank order, and worker 0 has their sum") {
  Workers three(3);
  for (uint now: {1u, 2u, 3u, 5u}) {
    CAPTURE(now);
    auto carried = three.as(now, 2);
    REQUIRE(carried.size() == now);
    auto sum = valuesIn<float>(carried[0], "store.unsent");
    for (size_t i: {0, 1, 2}) {
      // In another order, the sum of the first values would be different.
      float expected = (UNSENT[0][i] + UNSENT[1][i]) + UNSENT[2][i];
      CHECK(memcmp(&expected, &sum[i], sizeof(float)) == 0);
    }
    CHECK(sum[0] != (UNSENT[0][0] + UNSENT[2][0]) + UNSENT[1][0]);
    for (uint rank = 1; rank < now; rank++) {
      for (float x: valuesIn<float>(carried[rank], "store.unsent")) CHECK(x == 0);
    }
  }
}

TEST_CASE("carriedWorkers: a rank keeps its state, and a new one begins as a copy of worker 0") {
  auto carried = Workers(2).as(4, 3);
  CHECK(valuesIn<float>(carried[1], "store.optimizer")[0] == 11);
  CHECK(valuesIn<float>(carried[1], "store.velocities")[0] == 2);
  CHECK(valuesIn<uint64_t>(carried[1], "store.traffic.1")[0] == 2);
  CHECK(tests::contains(notesIn(carried[1])[0].text, "of 1"));
  for (uint rank: {2u, 3u}) {
    CHECK(valuesIn<float>(carried[rank], "store.optimizer")[0] == 10);
    CHECK(valuesIn<float>(carried[rank], "store.velocities")[0] == 0);
    CHECK(valuesIn<uint64_t>(carried[rank], "store.steps")[0] == 30);
    CHECK(valuesIn<uint64_t>(carried[rank], "store.traffic.0")[0] == 0);
    CHECK(tests::contains(notesIn(carried[rank])[0].text, "of 0"));
  }
  CHECK(valuesIn<uint64_t>(carried[1], "store.traffic.2")[0] == 0);
  for (auto name: {"best.weights", "average.values", "average.taken", "average.step"}) {
    CAPTURE(name);
    CHECK(has(carried[0], name));
    CHECK(!has(carried[1], name));
    CHECK(!has(carried[2], name));
  }
}

TEST_CASE("carriedWorkers: keeps no traffic counts of servers that the new job does not have") {
  auto carried = Workers(2).as(2, 1);
  CHECK(has(carried[1], "store.traffic.0"));
  CHECK(!has(carried[1], "store.traffic.1"));
}

TEST_CASE("carriedFacts: lists the state that is added up, lost and copied") {
  auto fewer = kj::strArray(carriedFacts(Workers(3).parts, 2), "; ");
  CHECK(fewer ==
        "what compression had not sent is added up in worker 0; what only worker 2 had is lost: "
        "its own optimizer's state, the momentum of its compression");
  auto more = kj::strArray(carriedFacts(Workers(1).parts, 3), "; ");
  CHECK(tests::contains(more, "workers 1 to 2 begin as copies of worker 0"));
}

// Returns the value of the float at `offset`. Every float is different, so that a test sees where a
// float comes from.
float valueAt(uint64_t offset) {
  return float(offset) + 0.5f;
}

kj::Array<kj::Array<kj::byte>> shardsOf(const rpc::Placement& placement) {
  auto result = kj::heapArrayBuilder<kj::Array<kj::byte>>(placement.shards.size());
  for (auto shard: kj::indices(placement.shards)) {
    kj::Vector<float> values, state;
    kj::Vector<uint64_t> versions, pushes, steps;
    for (auto id: placement.shards[shard]) {
      auto& slice = placement.slices[id];
      for (uint64_t i = 0; i < slice.size; i++) values.add(valueAt(slice.offset + i));
      // Key 0 has two arrays of state, key 1 has none, and each other key has one.
      uint arrays = slice.key == 0 ? 2 : slice.key == 1 ? 0 : 1;
      for (uint64_t i = 0; i < arrays * slice.size; i++) state.add(-valueAt(slice.offset + i));
      versions.add(id + 100);
      pushes.add(id);
      steps.add(1000 * id);
    }
    PartSaver saver(0);
    saver.floats("shard.values", values);
    saver.floats("shard.optimizer", state);
    saver.floats("shard.sums", kj::ArrayPtr<float>());
    saver.counts("shard.versions", versions);
    saver.counts("shard.pushes", pushes);
    saver.counts("shard.steps", steps);
    uint64_t rested = 3, pushed = shard + 1, dropped = 0, staleness[] = {shard, 1};
    saver.count("shard.rested", rested);
    saver.count("shard.pushed", pushed);
    saver.count("shard.dropped", dropped);
    saver.counts("shard.staleness", staleness);
    result.add(bytesOf(saver.finish()));
  }
  return result.finish();
}

TEST_CASE(
    "carriedShards: a slice keeps its values, state and counts when it moves to another shard") {
  for (uint shardsBefore: {1u, 2u, 3u}) {
    for (uint shardsNow: {1u, 2u, 4u}) {
      CAPTURE(shardsBefore);
      CAPTURE(shardsNow);
      auto before = placementFor(shardsBefore), now = placementFor(shardsNow);
      auto owned = shardsOf(before);
      auto parts = KJ_MAP(part, owned) {
        return part.asPtr().asConst();
      };
      auto stateArrays = [](const rpc::Slice& slice) {
        return slice.key == 0 ? 2u : slice.key == 1 ? 0u : 1u;
      };
      auto carried = carriedShards(parts, before, now, stateArrays);
      auto expected = shardsOf(now);
      REQUIRE(carried.size() == shardsNow);
      uint64_t pushed = 0;
      for (auto shard: kj::indices(carried)) {
        auto bytes = bytesOf(carried[shard]);
        for (auto name: {"shard.values", "shard.optimizer"}) {
          CHECK(valuesIn<float>(bytes, name) == valuesIn<float>(expected[shard], name));
        }
        for (auto name: {"shard.versions", "shard.pushes", "shard.steps", "shard.rested"}) {
          CHECK(valuesIn<uint64_t>(bytes, name) == valuesIn<uint64_t>(expected[shard], name));
        }
        pushed += valuesIn<uint64_t>(bytes, "shard.pushed")[0];
      }
      CHECK(pushed == shardsBefore * (shardsBefore + 1) / 2);
    }
  }
}

}  // namespace
}  // namespace runner

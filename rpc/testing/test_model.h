// rpc/testing/test_model.h: keys of given sizes, and update rules with known results, for the tests
// of rpc.
#pragma once

#include <kj/debug.h>
#include <kj/vector.h>

#include <initializer_list>

#include "configs/language/document.h"
#include "configs/language/reader.h"
#include "rpc/modes/modes.h"
#include "rpc/placement.h"
#include "rpc/rounds.h"

namespace rpc {

// Makes keys of these sizes (in floats), one after another.
inline kj::Array<Key> makeKeys(kj::ArrayPtr<const uint64_t> sizes) {
  kj::Vector<Key> keys;
  uint64_t offset = 0;
  for (auto size: sizes) {
    keys.add(Key{kj::str("key", keys.size()), offset, size});
    offset += size;
  }
  return keys.releaseAsArray();
}

inline kj::Array<Key> makeKeys(std::initializer_list<uint64_t> sizes) {
  return makeKeys(kj::arrayPtr(sizes.begin(), sizes.size()));
}

template <typename Row>
const Row& rowOf(kj::ArrayPtr<const Row> table, kj::StringPtr name) {
  for (auto& row: table) {
    if (name == row.name) return row;
  }
  KJ_FAIL_REQUIRE("no such row", name);
}

// Reads the section [kvstore] from the text of a file.
inline KvStoreConfig kvStoreOf(kj::StringPtr toml) {
  configs::Diagnostics diagnostics;
  auto document = configs::parse("kvstore.toml", toml, diagnostics);
  configs::Reading reading{diagnostics, {}};
  auto config = configs::readDocument(*document, reading, KvStoreConfig::read);
  KJ_REQUIRE(diagnostics.count() == 0, toml);
  return config;
}

// Returns the rounds of the mode of this name with `keys`. Other keys have their defaults.
inline Rounds roundsOf(kj::StringPtr mode, uint workers, kj::StringPtr keys = nullptr) {
  return kvStoreOf(kj::str("mode = '", mode, "'\n", keys)).rounds(workers);
}

// Returns the codec of these keys of [kvstore].
inline codec::Codec codecOf(kj::StringPtr keys) {
  return kvStoreOf(kj::str("mode = 'dist_sync'\n", keys)).codec;
}

inline Placement placeBalanced(kj::ArrayPtr<const Key> keys, uint64_t sliceBytes, uint shards) {
  return place(keys, sliceBytes, shards, rowOf(PLACEMENTS, "balanced"));
}

// MXNet's "test" optimizer: the value grows by `rate` times the gradient.
class TestUpdater final: public Updater {
public:
  explicit TestUpdater(float rate): rate(rate) {}

  uint stateArrays(const Slice&) const override { return 0; }

  void update(const Slice& slice, const Round& round, kj::ArrayPtr<const float> current,
      kj::ArrayPtr<float> next, kj::ArrayPtr<float>) override {
    KJ_REQUIRE(current.begin() != next.begin());
    for (uint64_t i = 0; i < slice.size; i++) next[i] = current[i] + rate * round.gradientSum[i];
  }

private:
  float rate;
};

// A rule whose results depend on the order of sums, on all earlier rounds, and on the round's
// number.
class MomentumUpdater final: public Updater {
public:
  uint stateArrays(const Slice&) const override { return 1; }

  void update(const Slice& slice, const Round& round, kj::ArrayPtr<const float> current,
      kj::ArrayPtr<float> next, kj::ArrayPtr<float> state) override {
    KJ_REQUIRE(current.begin() != next.begin());
    float rate = 0.1f / float(round.number + 1);
    for (uint64_t i = 0; i < slice.size; i++) {
      state[i] = 0.9f * state[i] - rate * round.gradientSum[i];
      next[i] = current[i] + state[i];
    }
  }
};

// Returns a number in [-1, 1) that looks random and depends only on the arguments (the mixing step
// of splitmix64).
inline float noise(uint64_t a, uint64_t b, uint64_t c) {
  uint64_t z = a * 0x9e3779b97f4a7c15 + b * 0xbf58476d1ce4e5b9 + c * 0x94d049bb133111eb + 1;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return float(int32_t((z ^ (z >> 31)) >> 32)) / 2147483648.0f;
}

}  // namespace rpc

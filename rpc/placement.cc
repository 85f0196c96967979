#include "rpc/placement.h"

#include <kj/debug.h>
#include <kj/vector.h>

#include <algorithm>

namespace rpc {

namespace {

// Within a key, slices begin at multiples of 64 bytes, so that loops process whole vectors and
// cache lines.
constexpr uint64_t PIECE_FLOATS = 16;

// Equal slices of a 64th of the model keep the largest share below 1.1/S for up to 11 servers, even
// if one key is nearly all of the model (mlp, lenet).
constexpr uint64_t PIECES_OF_MODEL = 64;

// Sending a message of this size takes about as long as handling it. Smaller slices would only cost
// more.
constexpr uint64_t PIECE_BYTES_MIN = 4096;

uint64_t divideUp(uint64_t a, uint64_t b) {
  return (a + b - 1) / b;
}

void dealBalanced(kj::ArrayPtr<Slice> slices, kj::ArrayPtr<const Key>, uint shards) {
  auto order = kj::heapArray<SliceId>(slices.size());
  for (auto i: kj::indices(order)) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
      [&](SliceId a, SliceId b) { return slices[a].size > slices[b].size; });
  auto load = kj::heapArray<uint64_t>(shards);
  for (auto& floats: load) floats = 0;
  for (auto id: order) {
    uint least = std::min_element(load.begin(), load.end()) - load.begin();
    slices[id].shard = least;
    load[least] += slices[id].size;
  }
}

void dealRoundRobin(kj::ArrayPtr<Slice> slices, kj::ArrayPtr<const Key>, uint shards) {
  for (auto& slice: slices) slice.shard = slice.key % shards;
}

// From EncodeDefaultKey in MXNet 1.x's src/kvstore/kvstore_dist.h. The bound is the default of its
// MXNET_KVSTORE_BIGARRAY_BOUND, in floats.
constexpr uint64_t HASH_FACTOR = 9973;
constexpr uint64_t BIGARRAY_BOUND = 1'000'000;

void dealMxnetHash(kj::ArrayPtr<Slice> slices, kj::ArrayPtr<const Key> keys, uint shards) {
  for (auto& slice: slices) {
    auto& key = keys[slice.key];
    if (key.size < BIGARRAY_BOUND || !key.splittable) {
      slice.shard = slice.key * HASH_FACTOR % shards;
    } else {
      // MXNet cuts keys at the borders between servers. Here a border may lie within a slice, and
      // the middle of the slice decides.
      slice.shard = (slice.offset - key.offset + slice.size / 2) * shards / key.size;
    }
  }
}

constexpr PlacementRule ROWS[] = {
    {"balanced",
        "Slices are assigned in order of size, the largest first, each to the server that has the "
        "least so far. If keys may be cut, the largest share of a server usually stays below 1.1 / "
        "servers with up to 11 servers. With more servers, or a very small model, it may be "
        "larger. `runner explain` shows it.",
        dealBalanced},
    {"round_robin", "Whole keys are assigned to the servers in turn, without regard to their size.",
        dealRoundRobin},
    {"mxnet_hash",
        "MXNet's rule, for comparisons. A key with number k and fewer than 1,000,000 floats goes "
        "whole to server (9973 · k) mod servers. A larger key is divided into equal parts, one per "
        "server, in order. Here, parts end at the nearest slice border, and a key that may not be "
        "cut always goes whole to one server.",
        dealMxnetHash},
};

}  // namespace

constinit const kj::ArrayPtr<const PlacementRule> PLACEMENTS(ROWS);

uint64_t Placement::parameters() const {
  return slices.size() == 0 ? 0 : slices.back().offset + slices.back().size;
}

double Placement::largestShare() const {
  uint64_t largest = 0;
  for (auto& ids: shards) {
    uint64_t floats = 0;
    for (auto id: ids) floats += slices[id].size;
    largest = kj::max(largest, floats);
  }
  return largest == 0 ? 0 : double(largest) / double(parameters());
}

SliceRange Placement::slicesOf(uint64_t begin, uint64_t end) const {
  auto borderAt = [&](uint64_t offset) -> SliceId {
    auto at = std::lower_bound(slices.begin(), slices.end(), offset,
        [](const Slice& slice, uint64_t offset) { return slice.offset < offset; });
    KJ_REQUIRE(at == slices.end() ? offset == parameters() : at->offset == offset,
        "a range of parameters must begin and end at borders of keys", begin, end);
    return at - slices.begin();
  };
  KJ_REQUIRE(begin <= end, begin, end);
  return {borderAt(begin), borderAt(end)};
}

// The version of the messages in kvstore.capnp. Increase it when the meaning of a field changes.
// Then binaries with different versions refuse each other with a clear message.
constexpr uint64_t PROTOCOL = 2;

uint64_t Placement::digest() const {
  uint64_t hash = 0xcbf29ce484222325;
  auto add = [&](uint64_t value) {
    for (uint byte = 0; byte < 8; byte++) {
      hash = (hash ^ ((value >> (8 * byte)) & 0xff)) * 0x100000001b3;
    }
  };
  add(PROTOCOL);
  add(shards.size());
  for (auto& slice: slices) {
    add(slice.key);
    add(slice.offset);
    add(slice.size);
    add(slice.shard);
  }
  return hash;
}

Placement place(
    kj::ArrayPtr<const Key> keys, uint64_t sliceBytes, uint shards, const PlacementRule& rule) {
  KJ_REQUIRE(shards >= 1);
  uint64_t parameters = 0;
  for (auto& key: keys) {
    KJ_REQUIRE(key.size > 0, key.name);
    KJ_REQUIRE(key.offset == parameters, "keys must follow one another without gaps", key.name);
    parameters += key.size;
  }
  uint64_t fair = kj::max(PIECE_BYTES_MIN, divideUp(parameters * sizeof(float), PIECES_OF_MODEL));
  uint64_t limit = kj::min(sliceBytes, fair) / sizeof(float);
  limit = kj::max(PIECE_FLOATS, limit / PIECE_FLOATS * PIECE_FLOATS);

  kj::Vector<Slice> slices;
  for (auto i: kj::indices(keys)) {
    auto& key = keys[i];
    uint64_t pieces = key.splittable ? divideUp(key.size, limit) : 1;
    uint64_t piece = divideUp(divideUp(key.size, pieces), PIECE_FLOATS) * PIECE_FLOATS;
    for (uint64_t begin = 0; begin < key.size; begin += piece) {
      slices.add(Slice{uint(i), key.offset + begin, kj::min(piece, key.size - begin), 0});
    }
  }
  rule.deal(slices, keys, shards);

  auto dealt = kj::heapArray<kj::Vector<SliceId>>(shards);
  for (auto id: kj::indices(slices)) dealt[slices[id].shard].add(id);
  auto held = KJ_MAP(ids, dealt) {
    return ids.releaseAsArray();
  };
  return {slices.releaseAsArray(), kj::mv(held)};
}

}  // namespace rpc

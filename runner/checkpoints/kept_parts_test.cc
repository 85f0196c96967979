#include "runner/checkpoints/kept_parts.h"

#include <doctest/doctest.h>

#include "runner/checkpoints/saved_part.h"
#include "tests/text.h"

namespace runner {
namespace {

using Bytes = kj::ArrayPtr<const kj::byte>;

kj::Array<kj::byte> joined(kj::ArrayPtr<const Bytes> pieces) {
  kj::Vector<kj::byte> all;
  for (auto& piece: pieces) all.addAll(piece);
  return all.releaseAsArray();
}

kj::Array<kj::byte> joined(Bytes first, Bytes second) {
  Bytes pieces[] = {first, second};
  return joined(pieces);
}

// The parameters of two keys, of which each shard holds several slices.
struct Parameters {
  kj::Array<float> flat = kj::heapArray<float>(100);
  rpc::Placement placement;

  explicit Parameters(uint shards) {
    for (auto i: kj::indices(flat)) flat[i] = float(i) + 0.5f;
    rpc::Key keys[] = {{kj::str("a"), 0, 70}, {kj::str("b"), 70, 30}};
    placement = rpc::place(keys, 64, shards, rpc::PLACEMENTS[0]);
  }

  // Returns what the role of `shard` sends.
  kj::Array<kj::byte> part(uint shard) {
    PartSaver saver(0);
    uint64_t versions[] = {7, 8, shard};
    saver.counts("shard.versions", versions);
    kj::Vector<kj::ArrayPtr<float>> slices;
    for (auto id: placement.shards[shard]) slices.add(placement.slices[id].of(flat.asPtr()));
    saver.floats(SHARD_VALUES, slices);
    Note notes[] = {{"plan"_kj, kj::str("chosen")}};
    auto saved = saver.finish(notes);
    return joined(saved.head, saved.values);
  }

  // Returns a file of weights: parameters and some statistics.
  kj::Array<kj::byte> weights(size_t parameters) {
    PartSaver saver(0);
    float statistics[] = {-1, -2};
    saver.floats("parameters", flat.slice(0, parameters));
    saver.floats("statistics", statistics);
    auto saved = saver.finish();
    return joined(saved.head, saved.values);
  }
};

TEST_CASE("wholeShard: restores the part that withoutLast() has shortened, byte by byte") {
  for (uint shards: {1u, 2u, 3u}) {
    CAPTURE(shards);
    Parameters parameters(shards);
    auto weights = parameters.weights(100);
    for (uint shard = 0; shard < shards; shard++) {
      auto part = parameters.part(shard);
      auto kept = withoutLast(part, contentsOf(part), SHARD_VALUES);
      auto file = joined(kept.head, kept.values);
      auto left = tensorsIn(file);
      REQUIRE(left.size() == 1);
      CHECK(left[0].name == "shard.versions");
      auto whole = wholeShard(file, weights, parameters.placement, shard);
      CHECK((joined(whole.pieces) == part));
    }
  }
}

TEST_CASE("wholeShard: a file that has the values is the whole part") {
  Parameters parameters(2);
  auto part = parameters.part(1);
  auto kept = withoutLast(part, contentsOf(part), "another array"_kj);
  auto file = joined(kept.head, kept.values);
  CHECK((file == part));
  auto whole = wholeShard(file, nullptr, parameters.placement, 1);
  CHECK((joined(whole.pieces) == part));
}

TEST_CASE("wholeShard: refuses weights of another size") {
  Parameters parameters(2);
  auto part = parameters.part(0);
  auto kept = withoutLast(part, contentsOf(part), SHARD_VALUES);
  auto file = joined(kept.head, kept.values);
  auto weights = parameters.weights(97);
  for (auto bytes: {Bytes(weights), Bytes(weights.slice(0, 40)), Bytes()}) {
    CHECK_THROWS_WITH(wholeShard(file, bytes, parameters.placement, 0),
        doctest::Contains("the file of weights has fewer values"));
  }
}

}  // namespace
}  // namespace runner

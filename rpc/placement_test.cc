#include "rpc/placement.h"

#include <doctest/doctest.h>
#include <kj/vector.h>

#include "rpc/testing/test_model.h"

namespace rpc {
namespace {

const PlacementRule& rule(kj::StringPtr name) {
  return rowOf(PLACEMENTS, name);
}

// A convolution with bias, gamma and beta, as the networks have them.
void addConvolution(kj::Vector<uint64_t>& sizes, uint in, uint out, uint kernel) {
  sizes.add(uint64_t(in) * out * kernel * kernel);
  for (uint i = 0; i < 3; i++) sizes.add(out);
}

// The arrays of inception-bn-28-small: 1,652,826 values in 78 arrays.
kj::Array<Key> inceptionSmall() {
  struct Block {
    uint a, b;  // filters of the 1×1 and the 3×3 branch; a = 0: a block that halves the image
  };
  constexpr Block BLOCKS[] = {{32, 32}, {32, 48}, {0, 80}, {112, 48}, {96, 64}, {80, 80}, {48, 96},
      {0, 96}, {176, 160}, {176, 160}};
  kj::Vector<uint64_t> sizes;
  addConvolution(sizes, 3, 96, 3);
  uint channels = 96;
  for (auto& block: BLOCKS) {
    if (block.a > 0) addConvolution(sizes, channels, block.a, 1);
    addConvolution(sizes, channels, block.b, 3);
    channels = block.a > 0 ? block.a + block.b : channels + block.b;
  }
  sizes.add(uint64_t(channels) * 10);
  sizes.add(10);
  return makeKeys(sizes);
}

kj::Array<Key> lenet() {
  return makeKeys({500, 20, 25000, 50, 400000, 500, 5000, 10});
}

kj::Array<Key> mlp() {
  return makeKeys({100352, 128, 8192, 64, 640, 10});
}

TEST_CASE("Placement: the networks' sizes in these tests are the published ones") {
  auto count = [](kj::ArrayPtr<const Key> keys) { return keys.back().offset + keys.back().size; };
  CHECK(count(inceptionSmall()) == 1652826);
  CHECK(inceptionSmall().size() == 78);
  CHECK(count(lenet()) == 431080);
  CHECK(count(mlp()) == 109386);
}

TEST_CASE("Placement: balanced keeps the largest share below 1.1/S with the default slice size") {
  for (uint shards = 1; shards <= 11; shards++) {
    for (auto& keys: {inceptionSmall(), lenet(), mlp()}) {
      CAPTURE(shards);
      CAPTURE(keys.size());
      CHECK(place(keys, 1 << 20, shards, rule("balanced")).largestShare() < 1.1 / shards);
    }
  }
}

TEST_CASE("Placement: slices cover every key once, in order, and every shard lists its own") {
  auto keys = lenet();
  auto placement = place(keys, 4096, 3, rule("balanced"));
  uint64_t end = 0;
  for (auto& slice: placement.slices) {
    CHECK(slice.offset == end);
    end += slice.size;
    auto& key = keys[slice.key];
    CHECK(slice.offset >= key.offset);
    CHECK(end <= key.offset + key.size);
    CHECK(slice.size <= 1024);
    bool last = end == key.offset + key.size;
    CHECK((last || slice.size % 16 == 0));
  }
  CHECK(end == 431080);
  CHECK(placement.parameters() == end);
  size_t listed = 0;
  for (auto shard: kj::indices(placement.shards)) {
    for (auto id: placement.shards[shard]) CHECK(placement.slices[id].shard == shard);
    listed += placement.shards[shard].size();
  }
  CHECK(listed == placement.slices.size());
}

TEST_CASE("Placement: borders of slices do not depend on the number of servers") {
  auto keys = inceptionSmall();
  auto one = place(keys, 1 << 20, 1, rule("balanced"));
  for (uint shards = 2; shards <= 8; shards++) {
    auto many = place(keys, 1 << 20, shards, rule("balanced"));
    REQUIRE(many.slices.size() == one.slices.size());
    for (auto i: kj::indices(one.slices)) {
      CHECK(many.slices[i].offset == one.slices[i].offset);
      CHECK(many.slices[i].size == one.slices[i].size);
    }
  }
}

TEST_CASE("Placement: a key that may not be split is one slice") {
  auto keys = makeKeys({400000, 100});
  keys[0].splittable = false;
  auto placement = place(keys, 4096, 2, rule("balanced"));
  CHECK(placement.slices.size() == 2);
  CHECK(placement.slices[0].size == 400000);
}

TEST_CASE("Placement: round_robin deals whole keys in turn") {
  auto placement = place(makeKeys({5000, 10, 20}), 4096, 2, rule("round_robin"));
  for (auto& slice: placement.slices) CHECK(slice.shard == slice.key % 2);
}

TEST_CASE("Placement: mxnet_hash deals whole keys by 9973 times their number") {
  for (uint shards: {2, 3, 5}) {
    auto placement = place(lenet(), 4096, shards, rule("mxnet_hash"));
    for (auto& slice: placement.slices) CHECK(slice.shard == slice.key * 9973 % shards);
  }
  // Each convolution has four arrays, and 9973 is odd. So nearly all of the model is on one server.
  auto share = [](uint shards) {
    return place(inceptionSmall(), 1 << 20, shards, rule("mxnet_hash")).largestShare();
  };
  CHECK(share(2) > 0.99);
  CHECK(share(4) > 0.99);
  CHECK(share(5) < 0.5);
}

TEST_CASE("Placement: mxnet_hash deals an array of a million floats evenly over all, in order") {
  constexpr uint64_t BOUND = 1'000'000;
  constexpr uint SHARDS = 3;
  auto placement = place(makeKeys({10, BOUND - 1, BOUND}), 1 << 16, SHARDS, rule("mxnet_hash"));
  uint64_t held[SHARDS] = {};
  uint last = 0;
  for (auto& slice: placement.slices) {
    if (slice.key < 2) {
      CHECK(slice.shard == slice.key * 9973 % SHARDS);
      continue;
    }
    CHECK(slice.shard >= last);
    last = slice.shard;
    held[last] += slice.size;
    // The borders differ from MXNet's, floor(size / shards * i), by at most half a slice.
    auto begin = slice.offset - 10 - (BOUND - 1);
    auto middle = begin + slice.size / 2;
    CHECK(middle >= BOUND / SHARDS * last);
    CHECK(middle <= BOUND / SHARDS * (last + 1) + 1);
  }
  for (auto floats: held) CHECK(floats == doctest::Approx(BOUND / SHARDS).epsilon(0.05));
}

TEST_CASE("Placement: mxnet_hash does not split a large key that may not be split") {
  auto keys = makeKeys({10, 2'000'000});
  keys[1].splittable = false;
  auto placement = place(keys, 4096, 2, rule("mxnet_hash"));
  REQUIRE(placement.slices.size() == 2);
  CHECK(placement.slices[1].shard == 1);
}

TEST_CASE("Placement: with more servers than slices, some servers have no slice") {
  auto placement = place(makeKeys({10}), 4096, 3, rule("balanced"));
  CHECK(placement.shards.size() == 3);
  CHECK(placement.shards[0].size() == 1);
  CHECK(placement.shards[2].size() == 0);
  CHECK(placement.largestShare() == 1.0);
}

TEST_CASE(
    "Placement: slicesOf() finds the slices of a range, which must begin and end at borders") {
  auto placement = place(makeKeys({4096, 10, 20}), 4096, 1, rule("balanced"));
  auto range = placement.slicesOf(4096, 4106);
  CHECK(range.end - range.begin == 1);
  CHECK(placement.slices[range.begin].key == 1);
  auto all = placement.slicesOf(0, 4126);
  CHECK(all.begin == 0);
  CHECK(all.end == placement.slices.size());
  CHECK_THROWS(placement.slicesOf(1, 4106));
  CHECK_THROWS(placement.slicesOf(0, 4127));
}

TEST_CASE("Placement: different placements have different digests") {
  auto keys = lenet();
  auto digest = place(keys, 4096, 2, rule("balanced")).digest();
  CHECK(place(keys, 4096, 2, rule("balanced")).digest() == digest);
  CHECK(place(keys, 4096, 3, rule("balanced")).digest() != digest);
  CHECK(place(keys, 8192, 2, rule("balanced")).digest() != digest);
  CHECK(place(keys, 4096, 2, rule("round_robin")).digest() != digest);
  CHECK(place(keys, 4096, 2, rule("mxnet_hash")).digest() != digest);
  CHECK(place(mlp(), 4096, 2, rule("balanced")).digest() != digest);
}

}  // namespace
}  // namespace rpc

#include "rpc/grouping.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/string.h>

#include "rpc/test_model.h"

namespace rpc {
namespace {

// Slices of these sizes (floats), all on one server unless `shards` says otherwise.
Placement placementOf(
    std::initializer_list<uint64_t> sizes, std::initializer_list<uint> shards = {}) {
  kj::Vector<Slice> slices;
  kj::Vector<kj::Vector<SliceId>> dealt;
  dealt.resize(2);
  uint64_t offset = 0;
  for (auto size: sizes) {
    SliceId id = slices.size();
    uint shard = shards.size() == 0 ? 0 : shards.begin()[id];
    slices.add(Slice{id, offset, size, shard});
    dealt[shard].add(id);
    offset += size;
  }
  auto held = KJ_MAP(ids, dealt) {
    return ids.releaseAsArray();
  };
  return {slices.releaseAsArray(), kj::mv(held)};
}

// "server: slices" of each group.
kj::String groupsOf(const Placement& placement, SliceRange range) {
  kj::Vector<kj::String> texts;
  forEachGroup(placement, range, [&](const Group& group) {
    texts.add(kj::str(group.shard, ": ", kj::strArray(group.slices, " ")));
  });
  return kj::strArray(texts, ", ");
}

constexpr uint64_t FLOATS_MAX = CALL_BYTES_MAX / sizeof(float);

TEST_CASE("forEachGroup: slices of a server share a call up to 256 KiB") {
  constexpr uint64_t QUARTER = FLOATS_MAX / 4;
  auto even = placementOf({QUARTER, QUARTER, QUARTER, QUARTER, QUARTER});
  CHECK(groupsOf(even, {0, 5}) == "0: 0 1 2 3, 0: 4");
  auto above = placementOf({QUARTER, QUARTER, QUARTER, QUARTER + 1});
  CHECK(groupsOf(above, {0, 4}) == "0: 0 1 2, 0: 3");
  auto full = placementOf({1, FLOATS_MAX, 1, FLOATS_MAX - 1});
  CHECK(groupsOf(full, {0, 4}) == "0: 0, 0: 1, 0: 2 3");
}

TEST_CASE("forEachGroup: a slice above 256 KiB travels alone") {
  auto placement = placementOf({1, FLOATS_MAX + 1, 1, 1, 3 * FLOATS_MAX});
  CHECK(groupsOf(placement, {0, 5}) == "0: 0, 0: 1, 0: 2 3, 0: 4");
}

TEST_CASE("forEachGroup: each server's slices of the range, in ascending order, over all keys") {
  auto placement = placementOf({10, 20, 30, 40, 50, 60}, {1, 0, 1, 1, 0, 1});
  CHECK(groupsOf(placement, {0, 6}) == "0: 1 4, 1: 0 2 3 5");
  CHECK(groupsOf(placement, {2, 4}) == "1: 2 3");
  CHECK(groupsOf(placement, {1, 2}) == "0: 1");
  CHECK(groupsOf(placement, {3, 3}) == "");
}

TEST_CASE("forEachGroup: a call has no more slices than a message has room for") {
  kj::Vector<uint64_t> sizes;
  sizes.resize(2 * CALL_SLICES_MAX + 1);
  for (auto& size: sizes) size = 1;
  auto placement = placeBalanced(makeKeys(sizes), 4096, 1);
  kj::Vector<size_t> counts;
  forEachGroup(placement, {0, SliceId(sizes.size())},
      [&](const Group& group) { counts.add(group.slices.size()); });
  CHECK(kj::strArray(counts, " ") == kj::str(CALL_SLICES_MAX, " ", CALL_SLICES_MAX, " 1"));
}

}  // namespace
}  // namespace rpc

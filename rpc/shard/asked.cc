#include "rpc/shard/asked.h"

#include <kj/debug.h>

namespace rpc {

void Asked::read(capnp::List<SliceFloats>::Reader list, const codec::Encoding& encoding) {
  slices.clear();
  bool areFloats = encoding.isFloats();
  for (auto entry: list) {
    SliceId id = entry.getSlice();
    // Asked for once: each access counts against the message's limit.
    codec::Bytes bytes = entry.getFloats();
    uint count = areFloats ? slicesIn(bytes.size(), id) : 1;
    for (uint i = 1; i < count; i++, id++) {
      uint64_t own = placement.slices[id].size * sizeof(float);
      add(id, bytes.slice(0, own));
      bytes = bytes.slice(own, bytes.size());
    }
    add(id, bytes);
  }
}

// How many slices from `id` on make up so many bytes of floats; 1 if none do: the shard says what
// is wrong.
uint Asked::slicesIn(uint64_t bytes, SliceId id) const {
  SliceId end = id;
  uint64_t covered = 0;
  while (covered < bytes && end < placement.slices.size()) {
    covered += placement.slices[end++].size * sizeof(float);
  }
  return covered == bytes && end > id ? end - id : 1;
}

void Asked::read(capnp::List<uint32_t>::Reader list) {
  slices.clear();
  for (auto id: list) add(id, nullptr);
}

void Asked::add(SliceId id, codec::Bytes payload) {
  // Also keeps a call from naming a slice twice.
  KJ_REQUIRE(slices.size() == 0 || slices.back().id < id, "the slices of a call must ascend",
      slices.back().id, id);
  slices.add(Slice{id, payload, 0});
}

}  // namespace rpc

#include "rpc/wire/payload.h"

#include <kj/debug.h>

namespace rpc {

namespace {

// Whether the bytes begin and end at multiples of 8 bytes.
bool isWhole(codec::Bytes bytes) {
  return bytes.size() % sizeof(capnp::word) == 0 &&
         reinterpret_cast<uintptr_t>(bytes.begin()) % sizeof(capnp::word) == 0;
}

}  // namespace

PushEncoder::PushEncoder(const codec::Codec& codec, const Placement& placement, uint workers)
    : kind(codec.pushes()),
      placement(placement),
      compression(kj::atomicAddRef(*codec.compression)),
      compressor(compression->newCompressor(codec.wire, placement.parameters(), workers)),
      slots(kind.isFloats() ? nullptr : kj::heapArray<Slot>(placement.slices.size())) {
  KJ_REQUIRE(workers >= 1);
}

codec::Bytes PushEncoder::encode(SliceId id, uint64_t step, codec::Floats gradient) {
  auto& slice = placement.slices[id];
  KJ_REQUIRE(gradient.size() == slice.size, id, gradient.size(), slice.size);
  if (slots == nullptr) return gradient.asBytes();
  auto& slot = slots[id];
  if (step + 1 == slot.steps) return slot.payload.bytes();
  KJ_REQUIRE(step == slot.steps, "a gradient is encoded out of turn", id, step, slot.steps);
  compressor->encode(slice.offset, step, gradient, slot.payload);
  slot.steps = step + 1;
  return slot.payload.bytes();
}

void PushEncoder::visitState(configs::StateVisitor& visitor, uint64_t steps) {
  compressor->visitState(visitor);
  for (auto& slot: slots) slot.steps = steps;
}

AnswerEncoder::AnswerEncoder(const codec::Encoding& encoding, const Placement& placement)
    : kind(encoding),
      slots(encoding.isFloats() ? nullptr : kj::heapArray<Slot>(placement.slices.size())) {}

codec::Bytes AnswerEncoder::encode(SliceId id, uint64_t version, codec::Floats values) {
  if (slots == nullptr) return values.asBytes();
  auto& slot = slots[id];
  if (slot.version != version) encoder.encode(kind, values, slot.payload);
  slot.version = version;
  return slot.payload.bytes();
}

void SliceRuns::add(SliceId id, uint64_t number, codec::Bytes bytes) {
  if (areFloats && runs.size() > 0) {
    auto& last = runs.back();
    bool follows = id == last.id + last.slices && bytes.begin() == last.bytes.end();
    if (follows && number == last.number && isWhole(last.bytes) && isWhole(bytes)) {
      last.bytes = kj::arrayPtr(last.bytes.begin(), bytes.end());
      last.slices++;
      return;
    }
  }
  runs.add(SliceRun{id, number, bytes});
}

bool isReferred(codec::Bytes bytes, Payload payload) {
  return payload == Payload::STAYS && bytes.size() >= REFERENCE_BYTES_MIN && isWhole(bytes);
}

capnp::MessageSize sizeOfList(kj::ArrayPtr<const SliceRun> runs, Payload payload) {
  constexpr uint64_t ENTRY_WORDS = 2;      // a number and a pointer
  constexpr uint64_t REFERENCE_WORDS = 2;  // to reach another segment
  uint64_t words = 4;                      // parameters or results, and the list's tag
  for (auto& run: runs) {
    words += ENTRY_WORDS;
    words += isReferred(run.bytes, payload)
                 ? REFERENCE_WORDS
                 : (run.bytes.size() + sizeof(capnp::word) - 1) / sizeof(capnp::word);
  }
  return {words, 0};
}

void CallSlices::read(capnp::List<SliceFloats>::Reader list, const codec::Encoding& encoding) {
  slices.clear();
  bool areFloats = encoding.isFloats();
  for (auto entry: list) {
    SliceId id = entry.getSlice();
    // Read only once, because each access counts against the message's traversal limit.
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

// Returns how many slices from `id` on together have this many bytes of floats. Returns 1 if no
// number of slices fits; then Shard reports the error.
uint CallSlices::slicesIn(uint64_t bytes, SliceId id) const {
  SliceId end = id;
  uint64_t covered = 0;
  while (covered < bytes && end < placement.slices.size()) {
    covered += placement.slices[end++].size * sizeof(float);
  }
  return covered == bytes && end > id ? end - id : 1;
}

void CallSlices::read(capnp::List<uint32_t>::Reader list) {
  slices.clear();
  for (auto id: list) add(id, nullptr);
}

void CallSlices::add(SliceId id, codec::Bytes payload) {
  // This also prevents a call from naming a slice twice.
  KJ_REQUIRE(slices.size() == 0 || slices.back().id < id, "the slices of a call must ascend",
      slices.back().id, id);
  slices.add(CallSlice{id, payload, 0});
}

}  // namespace rpc

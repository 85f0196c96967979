// rpc/shard/answer_encoder.h: what a server answers, encoded once for all workers.
#pragma once

#include "rpc/codec/encoding.h"
#include "rpc/placement.h"
#include "rpc/wire/payload.h"

namespace rpc {

// The payloads of slices' newest values. Memory: none with float32, which is sent from where it
// lies; else the newest payload of each slice.
class AnswerEncoder {
public:
  AnswerEncoder(const codec::Encoding& encoding, const Placement& placement)
      : kind(encoding),
        slots(encoding.isFloats() ? nullptr : kj::heapArray<Slot>(placement.slices.size())) {}

  const codec::Encoding& encoding() const { return kind; }

  struct Answer {
    codec::Bytes bytes;
    Payload payload;
  };

  // Of slice `id`, whose `version` these values are. The bytes stay until a later version is
  // encoded, float32 as long as the values.
  Answer encode(SliceId id, uint64_t version, codec::Floats values) {
    if (slots == nullptr) return {values.asBytes(), Payload::STAYS};
    auto& slot = slots[id];
    if (slot.version != version) encoder.encode(kind, values, slot.payload);
    slot.version = version;
    return {slot.payload.bytes(), Payload::CHANGES};
  }

private:
  struct Slot {
    codec::Buffer payload;
    uint64_t version = kj::maxValue;
  };

  const codec::Encoding kind;
  kj::Array<Slot> slots;  // of all slices of the placement
  codec::Encoder encoder;
};

}  // namespace rpc

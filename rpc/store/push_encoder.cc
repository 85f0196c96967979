#include "rpc/store/push_encoder.h"

#include <kj/debug.h>

namespace rpc::codec {

PushEncoder::PushEncoder(const Codec& codec, const Placement& placement, uint workers)
    : codec(codec),
      placement(placement),
      compressor(
          this->codec.compression->newCompressor(codec.wire, placement.parameters(), workers)),
      slots(codec.isPlain() ? nullptr : kj::heapArray<Slot>(placement.slices.size())) {
  KJ_REQUIRE(workers >= 1);
}

Bytes PushEncoder::encode(SliceId id, uint64_t step, Floats gradient) {
  auto& slice = placement.slices[id];
  KJ_REQUIRE(gradient.size() == slice.size, id, gradient.size(), slice.size);
  if (codec.isPlain()) return gradient.asBytes();
  auto& slot = slots[id];
  if (step + 1 == slot.steps) return slot.payload.bytes();
  KJ_REQUIRE(step == slot.steps, "a gradient is encoded out of turn", id, step, slot.steps);
  compressor->encode(slice.offset, step, gradient, slot.payload);
  slot.steps = step + 1;
  return slot.payload.bytes();
}

}  // namespace rpc::codec

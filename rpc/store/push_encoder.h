// rpc/store/push_encoder.h: a worker's side of compression: what it sends, and what it still keeps.
#pragma once

#include "rpc/codec/codec.h"
#include "rpc/codec/top_k.h"
#include "rpc/placement.h"

namespace rpc::codec {

// Makes payloads of one worker's gradients, and keeps of each slice what was not sent:
//
//   2bit   r ← r + g; codes of r are sent, and what they stand for is taken off r
//   topk   g ← g · min(1, clip / (√workers · ‖g‖));  u ← m·u + g;  v ← v + u
//          the k largest |v| are sent; there u ← 0, and what was sent is taken off v
//
// So without momentum or clipping what was sent and what is kept together are the sum of all
// gradients. A slice's sums are all zero at first, and gone with the worker.
//
// Memory for each value: none without compression and halves; two bytes for halves; r and two bits;
// v, and u if there is a momentum. For one thread.
class PushEncoder {
public:
  // `placement` must outlive it.
  PushEncoder(const Codec& codec, const Placement& placement, uint workers);

  // The payload, in codec.pushes(), of slice `id`'s gradient for `step` (from 0, each one more than
  // the last of the slice). The same step again gives the same bytes. They stay until the slice's
  // next step; without halves and compression they are the gradient itself.
  // Throws FAILED if the gradient is no finite number where that would not be seen otherwise.
  Bytes encode(SliceId id, uint64_t step, Floats gradient);

  // What is kept of all slices, as the flat array lies; empty without compression.
  Floats unsent() const { return kept; }

private:
  struct Slot {
    Buffer payload;
    uint64_t steps = 0;  // that were encoded
  };

  void encodeTwoBit(const Slice& slice, Floats gradient, Buffer& payload);
  void encodeTopK(const Slice& slice, uint64_t step, Floats gradient, Buffer& payload);
  float clippedBy(Floats gradient) const;

  const Codec codec;
  const Placement& placement;
  const uint workers;
  kj::Array<Slot> slots;        // of all slices of the placement
  kj::Array<float> kept;        // r or v
  kj::Array<float> velocities;  // u
  Encoder encoder;
  TopK largest;
};

}  // namespace rpc::codec

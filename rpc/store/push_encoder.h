// rpc/store/push_encoder.h: the payloads that a worker pushes, and keeps until they are answered.
#pragma once

#include "rpc/codec/codec.h"
#include "rpc/placement.h"

namespace rpc::codec {

// Makes payloads of one worker's gradients, slice by slice, and keeps them to be sent again.
// Memory: none where nothing but float32 travels; else the newest payload of each slice, and what
// the codec's compressor keeps. For one thread.
class PushEncoder {
public:
  // `placement` must outlive it.
  PushEncoder(const Codec& codec, const Placement& placement, uint workers);

  // The payload, in codec.pushes(), of slice `id`'s gradient for `step` (from 0, each one more than
  // the last of the slice). The same step again gives the same bytes. They stay until the slice's
  // next step; without halves and compression they are the gradient itself.
  // Throws FAILED if the gradient is no finite number where that would not be seen otherwise.
  Bytes encode(SliceId id, uint64_t step, Floats gradient);

  // What is kept of all slices for later pushes, as the flat array lies; empty without compression.
  Floats unsent() const { return compressor->unsent(); }

private:
  struct Slot {
    Buffer payload;
    uint64_t steps = 0;  // that were encoded
  };

  const Codec codec;
  const Placement& placement;
  kj::Own<Compressor> compressor;
  kj::Array<Slot> slots;  // of all slices of the placement
};

}  // namespace rpc::codec

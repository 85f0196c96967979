#include "rpc/store/push_encoder.h"

#include <kj/debug.h>
#include <math.h>

#include <cstring>

#include "configs/language/failure.h"
#include "rpc/codec/half.h"
#include "rpc/codec/loops.h"

namespace rpc::codec {

namespace {

kj::Array<float> zeros(uint64_t size) {
  auto values = kj::heapArray<float>(size);
  memset(values.begin(), 0, size * sizeof(float));
  return values;
}

// What arrives of a value that is sent.
float received(Encoding::Kind wire, float value) {
  switch (wire) {
    case Encoding::FLOAT16:
      return fromFloat16(toFloat16(value));
    case Encoding::BFLOAT16:
      return fromBFloat16(toBFloat16(value));
    default:
      return value;
  }
}

}  // namespace

PushEncoder::PushEncoder(const Codec& codec, const Placement& placement, uint workers)
    : codec(codec), placement(placement), workers(workers) {
  KJ_REQUIRE(workers >= 1);
  if (codec.isPlain()) return;
  slots = kj::heapArray<Slot>(placement.slices.size());
  if (codec.compression != Codec::NONE) kept = zeros(placement.parameters());
  if (codec.compression == Codec::TOP_K && codec.momentum != 0) {
    velocities = zeros(placement.parameters());
  }
}

Bytes PushEncoder::encode(SliceId id, uint64_t step, Floats gradient) {
  auto& slice = placement.slices[id];
  KJ_REQUIRE(gradient.size() == slice.size, id, gradient.size(), slice.size);
  if (codec.isPlain()) return gradient.asBytes();
  auto& slot = slots[id];
  if (step + 1 == slot.steps) return slot.payload.bytes();
  KJ_REQUIRE(step == slot.steps, "a gradient is encoded out of turn", id, step, slot.steps);
  switch (codec.compression) {
    case Codec::NONE:
      encoder.encode(codec.pushes(), gradient, slot.payload);
      break;
    case Codec::TWO_BIT:
      encodeTwoBit(slice, gradient, slot.payload);
      break;
    case Codec::TOP_K:
      encodeTopK(slice, step, gradient, slot.payload);
      break;
  }
  slot.steps = step + 1;
  return slot.payload.bytes();
}

void PushEncoder::encodeTwoBit(const Slice& slice, Floats gradient, Buffer& payload) {
  auto words = payload.resize((slice.size + 15) / 16 * sizeof(uint32_t));
  bool finite = loops().toTwoBit(gradient.begin(), slice.of(kept.asPtr()).begin(),
      reinterpret_cast<uint32_t*>(words.begin()), slice.size, codec.threshold);
  if (!finite) {
    // It would be kept for ever, and its value never change again.
    configs::fail(
        "a gradient is no finite number: training diverged; lower train.optimizer.learning_rate");
  }
}

void PushEncoder::encodeTopK(const Slice& slice, uint64_t step, Floats gradient, Buffer& payload) {
  auto v = slice.of(kept.asPtr());
  float scale = clippedBy(gradient);
  kj::ArrayPtr<float> u = nullptr;
  if (velocities.size() > 0) {
    u = slice.of(velocities.asPtr());
    loops().accumulate(gradient.begin(), u.begin(), v.begin(), v.size(), codec.momentum, scale);
  } else {
    loops().addScaled(gradient.begin(), v.begin(), v.size(), scale);
  }
  double sent = round(double(v.size()) * (1 - codec.sparsityAt(step)));
  auto positions = largest.find(v, kj::min(v.size(), kj::max(size_t(1), size_t(sent))));
  encoder.encode(codec.pushes(), v, positions, payload);
  for (uint32_t position: positions) v[position] -= received(codec.wire, v[position]);
  if (u == nullptr) return;
  for (uint32_t position: positions) u[position] = 0;
}

// What a gradient is multiplied by.
float PushEncoder::clippedBy(Floats gradient) const {
  if (codec.clipNorm == 0) return 1;
  double norm = sqrt(loops().squares(gradient.begin(), gradient.size()));
  double most = codec.clipNorm / sqrt(double(workers));
  return norm > most ? float(most / norm) : 1;
}

}  // namespace rpc::codec

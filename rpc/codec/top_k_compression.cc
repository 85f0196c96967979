#include "rpc/codec/top_k_compression.h"

#include <math.h>

#include "configs/language/reader.h"
#include "rpc/codec/half.h"
#include "rpc/codec/loops.h"
#include "rpc/codec/sparse.h"
#include "rpc/codec/top_k.h"

namespace rpc::codec {

namespace {

struct TopKKeys {
  double sparsity;  // the share of each slice's values that is not sent, below 1
  float momentum;
  double clipNorm;        // 0: gradients are not clipped
  uint64_t warmUp_steps;  // of each worker
};

// Returns the value that arrives if `value` is sent.
float received(Number wire, float value) {
  switch (wire) {
    case Number::FLOAT32:
      return value;
    case Number::FLOAT16:
      return fromFloat16(toFloat16(value));
    case Number::BFLOAT16:
      return fromBFloat16(toBFloat16(value));
  }
  KJ_UNREACHABLE;
}

class TopKCompressor final: public Compressor {
public:
  TopKCompressor(const TopKKeys& keys, Number wire, uint64_t values, uint workers)
      : Compressor(values),
        keys(keys),
        wire(wire),
        workers(workers),
        velocities(zeros(keys.momentum != 0 ? values : 0)) {}

  void visitState(configs::StateVisitor& visitor) override {
    Compressor::visitState(visitor);
    visitor.floats("store.velocities", velocities);
  }

  void encode(uint64_t offset, uint64_t step, Floats gradient, Buffer& payload) override {
    auto v = kept.slice(offset, offset + gradient.size());
    float scale = clippedBy(gradient);
    kj::ArrayPtr<float> u = nullptr;
    if (velocities.size() > 0) {
      u = velocities.slice(offset, offset + gradient.size());
      loops().accumulate(gradient.begin(), u.begin(), v.begin(), v.size(), keys.momentum, scale);
    } else {
      loops().addScaled(gradient.begin(), v.begin(), v.size(), scale);
    }
    double sparsity = sparsityAt(step, keys.warmUp_steps, keys.sparsity);
    double sent = round(double(v.size()) * (1 - sparsity));
    auto positions = largest.find(v, kj::min(v.size(), kj::max(size_t(1), size_t(sent))));
    encodeAt(positions, wire, v, payload);
    for (uint32_t position: positions) v[position] -= received(wire, v[position]);
    if (u == nullptr) return;
    for (uint32_t position: positions) u[position] = 0;
  }

private:
  // Returns the factor of a gradient.
  float clippedBy(Floats gradient) const {
    if (keys.clipNorm == 0) return 1;
    double norm = sqrt(loops().squares(gradient.begin(), gradient.size()));
    double most = keys.clipNorm / sqrt(double(workers));
    return norm > most ? float(most / norm) : 1;
  }

  const TopKKeys keys;
  const Number wire;
  const uint workers;
  kj::Array<float> velocities;  // u; v is what is kept
  TopK largest;
};

class TopKCompression final: public Compression {
public:
  explicit TopKCompression(const TopKKeys& keys): keys(keys) {}

  Encoding pushes(Number wire) const override { return {.kind = &SPARSE, .numbers = wire}; }
  Encoding sums(Number wire, uint) const override { return pushes(wire); }
  double sentShare() const override { return 1 - keys.sparsity; }
  kj::String words() const override {
    return kj::str("topk of ", keys.sparsity, " with momentum ", keys.momentum, ", norm ",
        keys.clipNorm, " and ", keys.warmUp_steps, " steps of warm-up");
  }

  kj::Own<Compressor> newCompressor(Number wire, uint64_t values, uint workers) const override {
    return kj::heap<TopKCompressor>(keys, wire, values, workers);
  }

private:
  const TopKKeys keys;
};

}  // namespace

kj::Own<const Compression> readTopK(configs::Reader& reader) {
  TopKKeys keys;
  keys.sparsity = reader.real("sparsity",
      "Share of the values of each slice that are not sent. At least one value per slice is sent.",
      {.atLeast = 0, .below = 1}, 0.99);
  keys.momentum = float(reader.real("momentum",
      "Momentum correction: each worker applies this momentum to its gradients before they "
      "accumulate. The optimizer should then have no momentum.",
      {.atLeast = 0, .below = 1}, 0));
  keys.clipNorm = reader
                      .maybeReal("clip_norm",
                          "Clips a worker's gradient of each slice to the norm clip_norm / "
                          "√workers, before it is accumulated. Default: no clipping.",
                          {.above = 0})
                      .orDefault(0);
  keys.warmUp_steps = reader.integer("warmup_steps",
      "Number of steps at the start of a run in which each worker sends more values. These steps "
      "are divided into equal parts, which send a quarter, a 16th, a 64th, … of the values. In "
      "modes `local_sgd` and `easgd`, this is the number of pushes.",
      {.atLeast = 0}, 0);
  return kj::atomicRefcounted<TopKCompression>(keys);
}

double sparsityAt(uint64_t step, uint64_t warmUp_steps, double sparsity) {
  if (step >= warmUp_steps) return sparsity;
  uint64_t parts = 0;
  for (double sent = 0.25; sent > 1 - sparsity; sent /= 4) parts++;
  if (parts == 0) return sparsity;
  double sent = 0.25;
  for (uint64_t part = step * parts / warmUp_steps; part > 0; part--) sent /= 4;
  return 1 - sent;
}

}  // namespace rpc::codec

#include "rpc/codec/two_bit_compression.h"

#include <kj/debug.h>
#include <math.h>

#include "configs/language/reader.h"
#include "rpc/codec/loops.h"
#include "rpc/codec/sparse.h"

namespace rpc::codec {

namespace {

uint64_t wordsOf(uint64_t size) {
  return (size + 15) / 16;
}

void checkTwoBit(const Encoding&, Bytes payload, uint64_t size) {
  KJ_REQUIRE(payload.size() == wordsOf(size) * sizeof(uint32_t),
      "a payload does not have its slice's size", payload.size(), size, "2bit");
  auto words = kj::arrayPtr(reinterpret_cast<const uint32_t*>(payload.begin()), wordsOf(size));
  uint32_t wrong = 0;
  for (uint32_t word: words) wrong |= word & ~(word >> 1) & 0x55555555;
  KJ_REQUIRE(wrong == 0, "there is no two-bit code 01");
  for (uint64_t i = size; i < words.size() * 16; i++) {
    KJ_REQUIRE((payload[i / 4] >> (6 - 2 * (i % 4)) & 3) == 0,
        "codes beyond the end of the slice are not 0", i);
  }
}

void decodeTwoBit(const Encoding& encoding, Bytes payload, kj::ArrayPtr<float> to, Put put) {
  auto loop = put == Put::SET ? loops().fromTwoBit : loops().addTwoBit;
  loop(reinterpret_cast<const uint32_t*>(payload.begin()), to.begin(), to.size(), encoding.unit);
}

double expectedTwoBit_bytes(const Encoding&, uint64_t size, double) {
  return wordsOf(size) * sizeof(uint32_t);
}

class TwoBitCompressor final: public Compressor {
public:
  TwoBitCompressor(float threshold, uint64_t values): Compressor(values), threshold(threshold) {}

  void encode(uint64_t offset, uint64_t, Floats gradient, Buffer& payload) override {
    size_t size = gradient.size();
    auto words = payload.resize(wordsOf(size) * sizeof(uint32_t));
    if (!loops().toTwoBit(gradient.begin(), kept.begin() + offset,
            reinterpret_cast<uint32_t*>(words.begin()), size, threshold)) {
      failNotFinite();
    }
  }

private:
  const float threshold;
};

class TwoBitCompression final: public Compression {
public:
  explicit TwoBitCompression(float threshold): threshold(threshold) {}

  Encoding pushes(Number) const override { return {.kind = &TWO_BIT, .unit = threshold}; }
  Encoding sums(Number, uint pushes) const override {
    return {.kind = &MULTIPLES, .unit = threshold, .most = pushes};
  }
  kj::String words() const override { return kj::str("2bit of ", threshold); }

  kj::Own<Compressor> newCompressor(Number, uint64_t values, uint) const override {
    return kj::heap<TwoBitCompressor>(threshold, values);
  }

private:
  const float threshold;
};

}  // namespace

constinit const EncodingKind TWO_BIT{
    "2bit", checkTwoBit, decodeTwoBit, expectedTwoBit_bytes, nullptr};

kj::Own<const Compression> readTwoBit(configs::Reader& reader) {
  return kj::atomicRefcounted<TwoBitCompression>(usedThreshold(reader.real("threshold",
      "A value is sent as +threshold or -threshold once that much has accumulated. The threshold "
      "applies to the gradient summed over the worker's batch, and is rounded to 12 significant "
      "bits.",
      {.atLeast = 1e-30, .atMost = 1e9}, 0.5)));
}

float usedThreshold(double threshold) {
  int exponent;
  double fraction = frexp(threshold, &exponent);
  return float(ldexp(round(ldexp(fraction, 12)), exponent - 12));
}

}  // namespace rpc::codec

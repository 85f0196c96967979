#include "rpc/codec/one_bit_compression.h"

#include <kj/debug.h>
#include <math.h>

#include "rpc/codec/loops.h"

namespace rpc::codec {

namespace {

constexpr uint64_t MEANS = 2;  // per group: of the values below 0, and of the others

uint64_t wordsOf(uint64_t values) {
  return (values + 31) / 32;
}

static_assert(ONE_BIT_GROUP % 32 == 0);

uint64_t payload_bytes(uint64_t size) {
  uint64_t groups = (size + ONE_BIT_GROUP - 1) / ONE_BIT_GROUP;
  return (MEANS * groups + wordsOf(size)) * sizeof(uint32_t);
}

// Calls visit(means, words, begin, count) for each group: `count` values from `begin` on. `T` is
// const or not.
template <typename T, typename Visit>
void forEachGroup(T* payload, uint64_t size, Visit&& visit) {
  using Mean = std::conditional_t<std::is_const_v<T>, const float, float>;
  using Word = std::conditional_t<std::is_const_v<T>, const uint32_t, uint32_t>;
  for (uint64_t begin = 0; begin < size; begin += ONE_BIT_GROUP) {
    uint64_t count = kj::min(ONE_BIT_GROUP, size - begin);
    auto means = reinterpret_cast<Mean*>(payload);
    auto words = reinterpret_cast<Word*>(means + MEANS);
    visit(means, words, begin, count);
    payload = reinterpret_cast<T*>(words + wordsOf(count));
  }
}

void checkOneBit(const Encoding&, Bytes payload, uint64_t size) {
  KJ_REQUIRE(payload.size() == payload_bytes(size), "a payload does not have its slice's size",
      payload.size(), size, "1bit");
  forEachGroup(payload.begin(), size,
      [](const float* means, const uint32_t* words, uint64_t, uint64_t count) {
        KJ_REQUIRE(isfinite(means[0]) && isfinite(means[1]), "a mean is not a finite number",
            means[0], means[1]);
        uint32_t unused = count % 32 == 0 ? 0 : ~uint32_t(0) << count % 32;
        KJ_REQUIRE(
            (words[wordsOf(count) - 1] & unused) == 0, "bits beyond the end of the slice are set");
      });
}

void decodeOneBit(const Encoding&, Bytes payload, kj::ArrayPtr<float> to, Put put) {
  auto loop = put == Put::SET ? loops().fromOneBit : loops().addOneBit;
  forEachGroup(payload.begin(), to.size(),
      [&](const float* means, const uint32_t* words, uint64_t begin, uint64_t count) {
        loop(words, means, to.begin() + begin, count);
      });
}

double expectedOneBit_bytes(const Encoding&, uint64_t size, double) {
  return payload_bytes(size);
}

class OneBitCompressor final: public Compressor {
public:
  explicit OneBitCompressor(uint64_t values): Compressor(values) {}

  void encode(uint64_t offset, uint64_t, Floats gradient, Buffer& payload) override {
    uint64_t size = gradient.size();
    bool finite = true;
    forEachGroup(payload.resize(payload_bytes(size)).begin(), size,
        [&](float* means, uint32_t* words, uint64_t begin, uint64_t count) {
          finite &= loops().toOneBit(
              gradient.begin() + begin, kept.begin() + offset + begin, words, means, count);
        });
    if (!finite) failNotFinite();
  }
};

class OneBitCompression final: public Compression {
public:
  Encoding pushes(Number) const override { return {.kind = &ONE_BIT}; }
  kj::String words() const override { return kj::str("1bit"); }

  kj::Own<Compressor> newCompressor(Number, uint64_t values, uint) const override {
    return kj::heap<OneBitCompressor>(values);
  }
};

}  // namespace

constinit const EncodingKind ONE_BIT{
    "1bit", checkOneBit, decodeOneBit, expectedOneBit_bytes, nullptr};

kj::Own<const Compression> readOneBit(configs::Reader&) {
  return kj::atomicRefcounted<OneBitCompression>();
}

}  // namespace rpc::codec

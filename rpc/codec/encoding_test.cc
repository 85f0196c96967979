#include "rpc/codec/encoding.h"

#include <doctest/doctest.h>
#include <kj/debug.h>

#include <cstring>

#include "configs/language/random.h"
#include "rpc/codec/digits.h"
#include "rpc/codec/loops.h"
#include "rpc/codec/one_bit_compression.h"
#include "rpc/codec/positions.h"
#include "rpc/codec/sparse.h"
#include "rpc/codec/two_bit_compression.h"
#include "rpc/testing/test_model.h"

namespace rpc::codec {
namespace {

constexpr Encoding FLOAT32;
constexpr Encoding FLOAT16{.numbers = Number::FLOAT16};
constexpr Encoding BFLOAT16{.numbers = Number::BFLOAT16};
constexpr Encoding CODES{.kind = &TWO_BIT, .unit = 0.5f};
constexpr Encoding BITS{.kind = &ONE_BIT};
constexpr Encoding FEW{.kind = &SPARSE};
constexpr Encoding FEW_HALVES{.kind = &SPARSE, .numbers = Number::FLOAT16};

Encoding multiplesOf(float unit, uint most) {
  return {.kind = &MULTIPLES, .unit = unit, .most = most};
}

bool same(Floats a, Floats b) {
  return a.size() == b.size() && memcmp(a.begin(), b.begin(), a.asBytes().size()) == 0;
}

// Returns multiples m of `unit` with |m| ≤ most, of which about `share` are not 0.
kj::Array<float> multiples(size_t size, float unit, uint most, float share) {
  auto values = kj::heapArray<float>(size);
  for (auto i: kj::indices(values)) {
    float m = 1 + int(float(most) * (0.5f + 0.5f * noise(1, i, most)));
    float sign = noise(3, i, 0) < 0 ? -1 : 1;
    bool sent = 0.5f + 0.5f * noise(2, i, size) < share;
    values[i] = sent ? sign * kj::min(m, float(most)) * unit : 0;
  }
  return values;
}

kj::Array<float> decoded(const Encoding& encoding, Bytes payload, size_t size) {
  encoding.check(payload, size);
  auto values = kj::heapArray<float>(size);
  for (auto& value: values) value = 99;
  encoding.decode(payload, values);
  return values;
}

TEST_CASE("Encoding: sparse values and multiples come back exactly, of every size and density") {
  Encoder encoder;
  Buffer buffer;
  bool seen[FORMS] = {};
  for (size_t size: {1, 2, 63, 64, 65, 1000, 70001}) {
    for (float share: {0.0f, 0.00002f, 0.001f, 0.02f, 0.2f, 0.8f, 1.0f}) {
      for (uint most: {1, 2, 4, 100, 4096}) {
        CAPTURE(size);
        CAPTURE(share);
        CAPTURE(most);
        auto values = multiples(size, 0.25f, most, share);
        for (auto& encoding: {FEW, multiplesOf(0.25f, most)}) {
          auto payload = encoder.encode(encoding, values, buffer);
          seen[payload[0]] = true;
          REQUIRE(same(decoded(encoding, payload, size), values));
          auto twice = decoded(encoding, payload, size);
          encoding.add(payload, twice);
          for (auto i: kj::indices(twice)) REQUIRE(twice[i] == 2 * values[i]);
        }
      }
    }
  }
  for (bool form: seen) CHECK(form);
}

TEST_CASE("Encoding: multiples take the fewest bits") {
  Encoder encoder;
  Buffer buffer;
  auto bits = [&](float share, uint most) {
    auto values = multiples(100000, 0.5f, most, share);
    return encoder.encode(multiplesOf(0.5f, most), values, buffer).size() * 8 / 100000.0;
  };
  // log2(9) = 3.17 and log2(3) = 1.58 bits. A few nonzero values take their positions and a digit
  // each.
  CHECK(bits(1, 4) < 3.21);
  CHECK(bits(1, 1) < 1.61);
  CHECK(bits(0.25f, 4) < 1.85);
  CHECK(bits(0.01f, 4) < 0.13);
}

TEST_CASE("Encoding: only halves are rounded, whether alone or as sparse values") {
  Encoder encoder;
  Buffer buffer;
  auto values = kj::heapArray<float>(1000);
  for (auto i: kj::indices(values)) values[i] = noise(5, i, 0);
  for (auto& encoding: {FLOAT16, BFLOAT16}) {
    auto halves = kj::heapArray<uint16_t>(1000);
    bool ieee = encoding.numbers == Number::FLOAT16;
    auto round = ieee ? loops().toFloat16 : loops().toBFloat16;
    auto widen = ieee ? loops().fromFloat16 : loops().fromBFloat16;
    auto expected = kj::heapArray<float>(1000);
    round(values.begin(), halves.begin(), 1000);
    widen(halves.begin(), expected.begin(), 1000);
    auto payload = encoder.encode(encoding, values, buffer);
    CHECK(payload == halves.asBytes());
    CHECK(same(decoded(encoding, payload, 1000), expected));
    Encoding sparse{.kind = &SPARSE, .numbers = encoding.numbers};
    CHECK(same(decoded(sparse, encoder.encode(sparse, values, buffer), 1000), expected));
  }
}

TEST_CASE("Encoding: float32 is sent without copying") {
  Encoder encoder;
  Buffer buffer;
  float values[] = {1, -2, 3};
  auto payload = encoder.encode(FLOAT32, values, buffer);
  CHECK(payload.begin() == reinterpret_cast<const kj::byte*>(values));
  Coded coded(kj::arrayPtr(values, 3));
  CHECK(KJ_ASSERT_NONNULL(coded.inPlace()).begin() == values);
  CHECK(Coded(FEW, nullptr).inPlace() == nullptr);
}

// Returns the text of the exception that check() throws. Empty if it does not throw.
kj::String refusal(const Encoding& encoding, Bytes payload, uint64_t size) {
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { encoding.check(payload, size); })) {
    return kj::str(e->getDescription());
  }
  return kj::str();
}

bool refuses(const Encoding& encoding, kj::ArrayPtr<const uint32_t> words, size_t cut,
    uint64_t size, kj::StringPtr sentence) {
  auto bytes = words.asBytes();
  auto text = refusal(encoding, bytes.slice(0, bytes.size() - cut), size);
  INFO(text.cStr());
  return strstr(text.cStr(), sentence.cStr()) != nullptr;
}

TEST_CASE("Encoding: bytes that are not a payload are refused with the reason") {
  auto words = [](auto... word) { return kj::heapArray<uint32_t>({uint32_t(word)...}); };
  auto half = kj::str("a payload does not have its slice's size");
  CHECK(refuses(FLOAT32, words(1, 2), 1, 2, half));
  CHECK(refuses(FLOAT16, words(1, 2), 0, 3, half));
  CHECK(refuses(BFLOAT16, words(1, 2), 0, 5, half));
  CHECK(refuses(CODES, words(0, 0), 0, 16, half));
  CHECK(refuses(CODES, words(0x10), 0, 16, "no two-bit code 01"));
  CHECK(refuses(CODES, words(0x03), 0, 3, "beyond the end of the slice"));
  // 1bit has two means and one word of bits per group.
  constexpr uint32_t INFINITE = 0x7f800000, NEGATIVE_NAN = 0xffc00000;
  CHECK(refuses(BITS, words(0, 0), 0, 3, half));
  CHECK(refuses(BITS, words(0, 0, 0, 0), 0, 3, half));
  CHECK(refuses(BITS, words(0, 0, 0), 1, 3, half));
  CHECK(refuses(BITS, words(INFINITE, 0, 0), 0, 3, "not a finite number"));
  CHECK(refuses(BITS, words(0, NEGATIVE_NAN, 0), 0, 3, "not a finite number"));
  CHECK(refuses(BITS, words(0, 0, 8), 0, 3, "beyond the end of the slice"));
  CHECK(refuses(BITS, words(0, 0, 0x80000000), 0, 31, "beyond the end of the slice"));
  CHECK(refusal(BITS, words(0, 0, 7).asBytes(), 3) == "");
  CHECK(refusal(BITS, words(0, 0, 0xffffffff).asBytes(), 32) == "");
  auto groups = kj::heapArray<uint32_t>(ONE_BIT_GROUP / 32 + 2 + 3);
  for (auto& word: groups) word = 0;
  CHECK(refusal(BITS, groups.asBytes(), ONE_BIT_GROUP + 1) == "");
  groups[ONE_BIT_GROUP / 32 + 3] = INFINITE;
  CHECK(refuses(BITS, groups, 0, ONE_BIT_GROUP + 1, "not a finite number"));
  CHECK(refuses(FEW, words(1), 0, 9, "cut off"));
  CHECK(refuses(FEW, words(4, 0), 0, 9, "unknown form"));
  CHECK(refuses(FEW, words(1 << 8, 0), 0, 9, "unknown form"));
  CHECK(refuses(FEW, words(0, 10), 0, 9, "more values"));
  CHECK(refuses(FEW, words(0, 0xffffffff), 0, 9, "more values"));
  CHECK(refuses(FEW, words(2, 3, 0, 0), 0, 9, "cut off"));
  CHECK(refuses(FEW, words(0, 2, 0, 0), 0, 3, "not have exactly"));
  CHECK(refuses(FEW, words(0, 2, 0, 0, 7), 0, 2, "not have exactly"));
  // Two values, with a bitmap that is too short, has three bits, or has a bit beyond the end.
  CHECK(refuses(FEW, words(1, 2, 0, 0, 3), 0, 9, "bitmap"));
  CHECK(refuses(FEW, words(1, 2, 0, 0, 7, 0), 0, 9, "numbers of positions and values differ"));
  CHECK(refuses(FEW, words(1, 2, 0, 0, 0x201, 0), 0, 9, "beyond the end of its slice"));
  // Gaps: position 9 of 9, one value less, one more, a skip that leads nowhere, half a gap.
  CHECK(refuses(FEW, words(2, 2, 0, 0, 0x0107), 2, 9, "beyond the end of its slice"));
  CHECK(refuses(FEW, words(2, 2, 0, 0, 0x01), 3, 9, "numbers of positions and values differ"));
  CHECK(refuses(FEW, words(2, 2, 0, 0, 0x010101), 1, 9, "numbers of positions and values differ"));
  CHECK(
      refuses(FEW, words(2, 2, 0, 0, 0xff0101), 1, 999, "numbers of positions and values differ"));
  CHECK(refuses(FEW, words(3, 1, 0, 0x010101), 1, 9, "is cut off"));
  // Digits: 3^20 and more in a word, 3 in a word of one digit; a count without its word.
  CHECK(refuses(multiplesOf(1, 1), words(0, 20, 0xfffffff0), 0, 20, "too large"));
  CHECK(refuses(multiplesOf(1, 1), words(0, 1, 3), 0, 1, "too large"));
  CHECK(refuses(multiplesOf(1, 1), words(0, 21, 0), 0, 21, "cut off"));
  CHECK(refusal(multiplesOf(1, 1), words(0, 20, 0).asBytes(), 20) == "");
}

TEST_CASE("Encoding: a payload that changes after its check writes nothing outside its slice") {
  constexpr size_t SIZE = 300;
  Encoder encoder;
  Buffer buffer;
  for (float share: {0.01f, 0.3f, 1.0f}) {
    for (auto& encoding: {FEW, FEW_HALVES, multiplesOf(0.5f, 4)}) {
      auto values = multiples(SIZE, 0.5f, 4, share);
      auto good = encoder.encode(encoding, values, buffer);
      for (size_t trial = 0; trial < 3000; trial++) {
        auto bad = kj::heapArray(good);
        for (size_t i = 0; i < 1 + trial % 5; i++) {
          size_t at = uint32_t(1e9f * (1 + noise(trial, i, 1))) % bad.size();
          bad[at] = uint8_t(128 * (1 + noise(trial, i, 2)));
        }
        auto target = kj::heapArray<float>(SIZE + 2);
        for (auto& value: target) value = 99;
        (void)kj::runCatchingExceptions([&]() { encoding.decode(bad, target.slice(1, SIZE + 1)); });
        REQUIRE(target[0] == 99);
        REQUIRE(target[SIZE + 1] == 99);
      }
    }
  }
}

// Multiples of a half up to ±2, or zeros.
kj::Array<float> halfMultiples(uint64_t size, double nonZero) {
  configs::Random random(7, configs::Purpose::INITIAL_VALUES);
  auto values = kj::heapArray<float>(size);
  for (auto& value: values) {
    float some = 0.5f * (1 + random.below(4)) * (random.below(2) == 0 ? 1 : -1);
    value = random.uniform() < nonZero ? some : 0;
  }
  return values;
}

TEST_CASE("expected_bytes: is within 3 % of the encoded size, for any share of nonzero values") {
  constexpr uint64_t SIZE = 100'003;
  for (double nonZero: {0.0001, 0.001, 0.01, 0.04, 0.3, 0.9, 1.0}) {
    auto values = halfMultiples(SIZE, nonZero);
    uint64_t count = 0;
    for (float value: values) count += value != 0;
    for (auto& encoding: {FLOAT32, FLOAT16, BFLOAT16, FEW, FEW_HALVES, multiplesOf(0.5f, 4)}) {
      Encoder encoder;
      Buffer buffer;
      CAPTURE(encoding.kind->name);
      CAPTURE(nonZero);
      CHECK(encoding.expected_bytes(SIZE, double(count) / SIZE) ==
            doctest::Approx(encoder.encode(encoding, values, buffer).size()).epsilon(0.03));
    }
  }
}

TEST_CASE("expected_bytes: is two bits per value, in whole words") {
  CHECK(CODES.expected_bytes(1600, 1) == 400);
  CHECK(CODES.expected_bytes(1601, 1) == 404);
}

TEST_CASE("expected_bytes: is one bit per value in whole words, and two means per group") {
  CHECK(BITS.expected_bytes(ONE_BIT_GROUP, 1) == 8 + ONE_BIT_GROUP / 8);
  CHECK(BITS.expected_bytes(3 * ONE_BIT_GROUP + 33, 1) == 3 * (8 + ONE_BIT_GROUP / 8) + 8 + 8);
}

TEST_CASE("Digits: take() returns what pack() packed, with every radix") {
  for (uint32_t radix: {2u, 3u, 5u, 8u, 9u, 255u, 256u, 65535u, 65536u, 1u << 31}) {
    CAPTURE(radix);
    Digits digits(radix);
    uint32_t word = digits.pack(digits.perWord, [&](uint64_t i) { return radix - 1 - i % 2; });
    CHECK(digits.fits(word, digits.perWord));
    for (uint i = 0; i < digits.perWord; i++) CHECK(digits.take(word) == radix - 1 - i % 2);
    CHECK(word == 0);
  }
}

}  // namespace
}  // namespace rpc::codec

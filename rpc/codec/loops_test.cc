#include "rpc/codec/loops.h"

#include <doctest/doctest.h>
#include <kj/array.h>
#include <kj/debug.h>
#include <math.h>

#include <cstring>

#include "rpc/codec/bits.h"
#include "rpc/testing/test_model.h"

namespace rpc::codec {
namespace {

// Returns floats with both signs, all exponents, ties between two halves, and their neighbours.
kj::Array<float> floatsOfEveryKind() {
  kj::Vector<float> all;
  for (uint32_t top = 0; top < 1 << 16; top++) {
    for (uint32_t low: {0u, 1u, 0x0fffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u, 0xf000u}) {
      all.add(floatOf(top << 16 | low));
    }
  }
  return all.releaseAsArray();
}

// The value of a half with the given number of exponent bits, by the definition.
double halfValue(uint16_t half, int exponentBits) {
  int fractionBits = 15 - exponentBits, bias = (1 << (exponentBits - 1)) - 1;
  int exponent = (half & 0x7fff) >> fractionBits, fraction = half & ((1 << fractionBits) - 1);
  double magnitude = exponent == (1 << exponentBits) - 1 ? (fraction == 0 ? INFINITY : NAN)
                     : exponent == 0                     ? ldexp(fraction, 1 - bias - fractionBits)
                                     : ldexp(1 + ldexp(fraction, -fractionBits), exponent - bias);
  return half & 0x8000 ? -magnitude : magnitude;
}

// Whether `half` is the nearest to `value`, or the even one of two that are equally near. Infinity
// takes the place of the number after the largest one.
bool isNearest(float value, uint16_t half, int exponentBits) {
  if (isnan(value)) return isnan(halfValue(half, exponentBits));
  if (bool(half & 0x8000) != bool(signbit(value))) return false;
  double exact = fabs(double(value));
  uint16_t magnitude = half & 0x7fff, infinite = ((1 << exponentBits) - 1) << (15 - exponentBits);
  auto at = [&](uint16_t m) {
    return m == infinite ? ldexp(1, 1 << (exponentBits - 1)) : halfValue(m, exponentBits);
  };
  if (isinf(value)) return magnitude == infinite;
  double own = fabs(exact - at(magnitude));
  auto beats = [&](uint16_t other) {
    double distance = fabs(exact - at(other));
    return distance < own || (distance == own && magnitude % 2 == 1);
  };
  return (magnitude == 0 || !beats(magnitude - 1)) &&
         (magnitude == infinite || !beats(magnitude + 1));
}

template <typename T>
bool same(kj::ArrayPtr<const T> a, kj::ArrayPtr<const T> b) {
  return a.size() == b.size() && memcmp(a.begin(), b.begin(), a.size() * sizeof(T)) == 0;
}

kj::Array<float> noiseOf(size_t count, uint64_t seed) {
  auto values = kj::heapArray<float>(count);
  for (auto i: kj::indices(values)) values[i] = noise(seed, i, 7);
  return values;
}

TEST_CASE("Loops: floats become the nearest half, and ties the even one") {
  auto values = floatsOfEveryKind();
  auto halves = kj::heapArray<uint16_t>(values.size());
  for (size_t row = 0; row < loopsHere(); row++) {
    CAPTURE(ALL_LOOPS[row]->name);
    ALL_LOOPS[row]->toFloat16(values.begin(), halves.begin(), values.size());
    size_t wrong = 0;
    for (auto i: kj::indices(values)) wrong += !isNearest(values[i], halves[i], 5);
    CHECK(wrong == 0);
    ALL_LOOPS[row]->toBFloat16(values.begin(), halves.begin(), values.size());
    wrong = 0;
    for (auto i: kj::indices(values)) wrong += !isNearest(values[i], halves[i], 8);
    CHECK(wrong == 0);
  }
}

TEST_CASE("Loops: every half becomes the float with the same value") {
  auto halves = kj::heapArray<uint16_t>(1 << 16);
  for (auto i: kj::indices(halves)) halves[i] = uint16_t(i);
  auto floats = kj::heapArray<float>(halves.size());
  for (size_t row = 0; row < loopsHere(); row++) {
    CAPTURE(ALL_LOOPS[row]->name);
    for (int exponentBits: {5, 8}) {
      auto widen = exponentBits == 5 ? ALL_LOOPS[row]->fromFloat16 : ALL_LOOPS[row]->fromBFloat16;
      widen(halves.begin(), floats.begin(), halves.size());
      size_t wrong = 0;
      for (auto i: kj::indices(halves)) {
        double exact = halfValue(halves[i], exponentBits);
        wrong += isnan(exact) ? !isnan(floats[i])
                              : exact != floats[i] || signbit(exact) != signbit(floats[i]);
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("Loops: every instruction set gives the same bits, whatever the count") {
  constexpr float UNIT = 0.25f;
  for (size_t count: {0, 1, 15, 16, 33, 1000}) {
    CAPTURE(count);
    auto gradient = noiseOf(count, 1), first = noiseOf(count, 2), second = noiseOf(count, 3);
    kj::Array<kj::byte> expected;
    for (size_t row = 0; row < loopsHere(); row++) {
      CAPTURE(ALL_LOOPS[row]->name);
      auto& loops = *ALL_LOOPS[row];
      kj::Vector<kj::byte> made;
      auto keep = [&](auto&& array) { made.addAll(array.asBytes()); };
      auto halves = kj::heapArray<uint16_t>(count);
      auto words = kj::heapArray<uint32_t>((count + 15) / 16);
      auto u = kj::heapArray<float>(first.asPtr()), v = kj::heapArray<float>(second.asPtr());
      loops.toBFloat16(gradient.begin(), halves.begin(), count);
      loops.addBFloat16(halves.begin(), u.begin(), count);
      loops.toFloat16(gradient.begin(), halves.begin(), count);
      loops.addFloat16(halves.begin(), v.begin(), count);
      CHECK(loops.toTwoBit(gradient.begin(), u.begin(), words.begin(), count, UNIT));
      loops.addTwoBit(words.begin(), v.begin(), count, UNIT);
      loops.accumulate(gradient.begin(), u.begin(), v.begin(), count, 0.9f, 0.7f);
      loops.addScaled(gradient.begin(), v.begin(), count, 0.3f);
      keep(halves), keep(words), keep(u), keep(v);
      double sum = loops.squares(v.begin(), count);
      made.addAll(kj::arrayPtr(&sum, 1).asBytes());
      auto magnitudes = kj::heapArray<uint32_t>(count / 3);
      loops.maxima(v.begin(), 3, count / 3, magnitudes.begin());
      keep(magnitudes);
      auto positions = kj::heapArray<uint32_t>(count);
      size_t found = loops.collect(v.begin(), count, bitsOf(0.8f), positions.begin());
      keep(positions.slice(0, found));
      loops.fromTwoBit(words.begin(), u.begin(), count, UNIT);
      auto multiples = kj::heapArray<int32_t>(count);
      CHECK(loops.toMultiples(u.begin(), UNIT, 1, multiples.begin(), count));
      keep(multiples);
      auto bits = kj::heapArray<uint32_t>((count + 31) / 32);
      float means[2];
      CHECK(loops.toOneBit(gradient.begin(), v.begin(), bits.begin(), means, count));
      loops.fromOneBit(bits.begin(), means, u.begin(), count);
      keep(bits), keep(v), keep(u), keep(kj::arrayPtr(means, 2));
      loops.addOneBit(bits.begin(), means, u.begin(), count);
      keep(u);
      if (row == 0) expected = kj::heapArray(made.asPtr());
      CHECK(same(expected.asPtr().asConst(), made.asPtr().asConst()));
    }
  }
}

TEST_CASE(
    "Loops: collect() finds magnitudes of at least a limit, and maxima() the largest per column") {
  float values[] = {1, -3, 0.5f, -0.0f, 2, -2, NAN, 7};
  for (size_t row = 0; row < loopsHere(); row++) {
    uint32_t positions[8], magnitudes[4];
    CHECK(ALL_LOOPS[row]->collect(values, 8, bitsOf(2), positions) == 5);
    for (auto [i, position]: {std::pair(0, 1u), {1, 4u}, {2, 5u}, {3, 6u}, {4, 7u}}) {
      CHECK(positions[i] == position);
    }
    ALL_LOOPS[row]->maxima(values, 2, 4, magnitudes);
    CHECK(magnitudes[0] == bitsOf(2));
    CHECK(magnitudes[1] == bitsOf(3));
    CHECK(magnitudes[2] > INFINITE);
    CHECK(magnitudes[3] == bitsOf(7));
  }
}

TEST_CASE("Loops: toMultiples reports values that are not multiples of the unit, or too large") {
  int32_t multiples[3];
  for (size_t row = 0; row < loopsHere(); row++) {
    auto& loops = *ALL_LOOPS[row];
    float good[] = {-1.5f, 0, 1}, between[] = {0.5f, 0.7f, 0}, large[] = {2, 0, 0}, none[] = {NAN};
    CHECK(loops.toMultiples(good, 0.5f, 3, multiples, 3));
    CHECK(multiples[0] == -3);
    CHECK(multiples[1] == 0);
    CHECK(multiples[2] == 2);
    CHECK(!loops.toMultiples(between, 0.5f, 3, multiples, 3));
    CHECK(!loops.toMultiples(large, 0.5f, 3, multiples, 3));
    CHECK(!loops.toMultiples(none, 0.5f, 3, multiples, 1));
  }
}

TEST_CASE("Loops: a one-bit code stands for the mean of all residuals with the same sign") {
  for (size_t count: {1, 2, 31, 32, 33, 100, 512}) {
    // Values of both signs, of one sign, and only zeros.
    for (float shift: {0.0f, 3.0f, -3.0f, NAN}) {
      CAPTURE(count);
      CAPTURE(shift);
      auto gradient = noiseOf(count, 1), before = noiseOf(count, 2);
      for (auto i: kj::indices(gradient)) {
        gradient[i] = isnan(shift) ? -before[i] : gradient[i] + shift;
      }
      double sums[2] = {}, counts[2] = {};
      for (auto i: kj::indices(gradient)) {
        float r = before[i] + gradient[i];
        sums[r >= 0] += r;
        counts[r >= 0]++;
      }
      for (size_t row = 0; row < loopsHere(); row++) {
        CAPTURE(ALL_LOOPS[row]->name);
        auto residual = kj::heapArray<float>(before.asPtr());
        auto words = kj::heapArray<uint32_t>((count + 31) / 32);
        auto decoded = kj::heapArray<float>(count);
        float means[2];
        REQUIRE(ALL_LOOPS[row]->toOneBit(
            gradient.begin(), residual.begin(), words.begin(), means, count));
        for (uint kind: {0, 1}) {
          double mean = counts[kind] > 0 ? sums[kind] / counts[kind] : 0;
          CHECK(means[kind] == doctest::Approx(mean).epsilon(1e-6));
        }
        ALL_LOOPS[row]->fromOneBit(words.begin(), means, decoded.begin(), count);
        for (auto i: kj::indices(gradient)) {
          float r = before[i] + gradient[i];
          bool bit = (words[i / 32] >> i % 32 & 1) == 1;
          REQUIRE(bit == (r >= 0));
          REQUIRE(decoded[i] == means[r >= 0]);
          REQUIRE(residual[i] == r - means[r >= 0]);
        }
        uint32_t unused = count % 32 == 0 ? 0 : words.back() >> count % 32;
        CHECK(unused == 0);
        auto twice = kj::heapArray<float>(decoded.asPtr());
        ALL_LOOPS[row]->addOneBit(words.begin(), means, twice.begin(), count);
        for (auto i: kj::indices(twice)) REQUIRE(twice[i] == 2 * decoded[i]);
      }
    }
  }
}

TEST_CASE("Loops: a residual that is not finite is reported") {
  for (size_t row = 0; row < loopsHere(); row++) {
    for (float bad: {float(INFINITY), float(NAN)}) {
      auto gradient = noiseOf(40, 1), residual = noiseOf(40, 2);
      gradient[37] = bad;
      uint32_t words[3];
      CHECK(!ALL_LOOPS[row]->toTwoBit(gradient.begin(), residual.begin(), words, 40, 0.5f));
      float means[2];
      CHECK(!ALL_LOOPS[row]->toOneBit(gradient.begin(), residual.begin(), words, means, 40));
    }
  }
}

}  // namespace
}  // namespace rpc::codec

// rpc/codec/loops_body.h: the loops of rpc/codec/loops.h as plain code, which the compiler turns
// into vectors of whatever instruction set its file is compiled for.
#pragma once

#include "rpc/codec/half.h"
#include "rpc/codec/loops.h"

namespace rpc::codec {
namespace {

constexpr size_t WORD_CODES = 16;  // of two bits
// The positions of the codes in a little-endian word.
constexpr uint32_t CODE_SHIFTS[WORD_CODES] = {
    6, 4, 2, 0, 14, 12, 10, 8, 22, 20, 18, 16, 30, 28, 26, 24};

constexpr size_t SUM_PARTS = 16;  // partial sums
constexpr size_t WORD_BITS = 32;
// The bits of a word, from the lowest on.
constexpr uint32_t BITS[WORD_BITS] = {1u << 0, 1u << 1, 1u << 2, 1u << 3, 1u << 4, 1u << 5, 1u << 6,
    1u << 7, 1u << 8, 1u << 9, 1u << 10, 1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15, 1u << 16,
    1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21, 1u << 22, 1u << 23, 1u << 24, 1u << 25,
    1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31};

template <uint16_t (*round)(float)>
void toHalves(const float* __restrict__ from, uint16_t* __restrict__ to, size_t count) {
  for (size_t i = 0; i < count; i++) to[i] = round(from[i]);
}

template <float (*widen)(uint16_t)>
void fromHalves(const uint16_t* __restrict__ from, float* __restrict__ to, size_t count) {
  for (size_t i = 0; i < count; i++) to[i] = widen(from[i]);
}

template <float (*widen)(uint16_t)>
void addHalves(const uint16_t* __restrict__ from, float* __restrict__ to, size_t count) {
  for (size_t i = 0; i < count; i++) to[i] += widen(from[i]);
}

// Makes one word of codes. Returns the largest magnitude of r.
inline uint32_t toWord(const float* __restrict__ gradient, float* __restrict__ residual,
    uint32_t* __restrict__ word, float threshold) {
  uint32_t codes = 0, largest = 0;
  for (size_t i = 0; i < WORD_CODES; i++) {
    float r = residual[i] + gradient[i];
    uint32_t magnitude = bitsOf(r) & MAGNITUDE;
    largest = largest > magnitude ? largest : magnitude;
    float sent = r >= threshold ? threshold : (r <= -threshold ? -threshold : 0.0f);
    uint32_t code = r >= threshold ? 3 : (r <= -threshold ? 2 : 0);
    residual[i] = r - sent;
    codes |= code << CODE_SHIFTS[i];
  }
  *word = codes;
  return largest;
}

bool toTwoBit(const float* __restrict__ gradient, float* __restrict__ residual,
    uint32_t* __restrict__ words, size_t count, float threshold) {
  uint32_t largest = 0;
  size_t whole = count / WORD_CODES * WORD_CODES;
  for (size_t i = 0; i < whole; i += WORD_CODES) {
    uint32_t own = toWord(gradient + i, residual + i, words + i / WORD_CODES, threshold);
    largest = largest > own ? largest : own;
  }
  if (whole < count) {
    float g[WORD_CODES] = {}, r[WORD_CODES] = {};
    for (size_t i = whole; i < count; i++) {
      g[i - whole] = gradient[i];
      r[i - whole] = residual[i];
    }
    uint32_t own = toWord(g, r, words + whole / WORD_CODES, threshold);
    largest = largest > own ? largest : own;
    for (size_t i = whole; i < count; i++) residual[i] = r[i - whole];
  }
  return largest < INFINITE;
}

inline float valueOf(uint32_t word, size_t i, float threshold) {
  uint32_t code = (word >> CODE_SHIFTS[i]) & 3;
  return code == 3 ? threshold : (code == 2 ? -threshold : 0.0f);
}

void fromTwoBit(
    const uint32_t* __restrict__ words, float* __restrict__ to, size_t count, float threshold) {
  size_t whole = count / WORD_CODES * WORD_CODES;
  for (size_t i = 0; i < whole; i += WORD_CODES) {
    uint32_t word = words[i / WORD_CODES];
    for (size_t j = 0; j < WORD_CODES; j++) to[i + j] = valueOf(word, j, threshold);
  }
  for (size_t i = whole; i < count; i++) {
    to[i] = valueOf(words[whole / WORD_CODES], i - whole, threshold);
  }
}

void addTwoBit(
    const uint32_t* __restrict__ words, float* __restrict__ to, size_t count, float threshold) {
  size_t whole = count / WORD_CODES * WORD_CODES;
  for (size_t i = 0; i < whole; i += WORD_CODES) {
    uint32_t word = words[i / WORD_CODES];
    for (size_t j = 0; j < WORD_CODES; j++) to[i + j] += valueOf(word, j, threshold);
  }
  for (size_t i = whole; i < count; i++) {
    to[i] += valueOf(words[whole / WORD_CODES], i - whole, threshold);
  }
}

// residual ← residual + gradient. Returns the largest magnitude of the sums.
uint32_t gather(const float* __restrict__ gradient, float* __restrict__ residual, size_t count) {
  int32_t largest = 0;
  for (size_t i = 0; i < count; i++) {
    residual[i] += gradient[i];
    int32_t magnitude = int32_t(bitsOf(residual[i]) & MAGNITUDE);
    largest = magnitude > largest ? magnitude : largest;
  }
  return uint32_t(largest);
}

// Returns all ones if the value has a minus sign, otherwise 0. The operator ?: would become a
// branch.
inline uint32_t minusMask(float value) {
  return uint32_t(int32_t(bitsOf(value)) >> 31);
}

// Returns a bit per value, for up to 32 values: 1 if it has no minus sign.
inline uint32_t plusBits(const float* __restrict__ values, size_t count) {
  uint32_t bits = 0;
  for (size_t i = 0; i < count; i++) bits |= ~minusMask(values[i]) & BITS[i];
  return bits;
}

bool toOneBit(const float* __restrict__ gradient, float* __restrict__ residual,
    uint32_t* __restrict__ words, float* __restrict__ means, size_t count) {
  uint32_t largest = gather(gradient, residual, count);
  size_t whole = count / WORD_BITS * WORD_BITS, ones = 0;
  for (size_t i = 0; i < whole; i += WORD_BITS) {
    words[i / WORD_BITS] = plusBits(residual + i, WORD_BITS);
  }
  if (whole < count) words[whole / WORD_BITS] = plusBits(residual + whole, count - whole);
  for (size_t i = 0; i < count; i += WORD_BITS) {
    ones += size_t(__builtin_popcount(words[i / WORD_BITS]));
  }
  double above[SUM_PARTS] = {}, below[SUM_PARTS] = {};
  auto add = [&](size_t begin, size_t j) {
    uint32_t r = bitsOf(residual[begin + j]), minus = minusMask(residual[begin + j]);
    above[j] += double(floatOf(r & ~minus));
    below[j] += double(floatOf(r & minus));
  };
  size_t summed = count / SUM_PARTS * SUM_PARTS;
  for (size_t i = 0; i < summed; i += SUM_PARTS) {
    for (size_t j = 0; j < SUM_PARTS; j++) add(i, j);
  }
  for (size_t j = 0; j < count - summed; j++) add(summed, j);
  double high = 0, low = 0;
  for (size_t j = 0; j < SUM_PARTS; j++) {
    high += above[j];
    low += below[j];
  }
  float lowMean = ones < count ? float(low / double(count - ones)) : 0;
  float highMean = ones > 0 ? float(high / double(ones)) : 0;
  means[0] = lowMean;
  means[1] = highMean;
  for (size_t i = 0; i < count; i++) {
    residual[i] -= minusMask(residual[i]) != 0 ? lowMean : highMean;
  }
  return largest < INFINITE;
}

template <bool ADDS>
void fromBits(const uint32_t* __restrict__ words, const float* __restrict__ means,
    float* __restrict__ to, size_t count) {
  float below = means[0], above = means[1];
  auto next = [&](size_t begin, size_t own) {
    uint32_t word = words[begin / WORD_BITS];
    for (size_t i = 0; i < own; i++) {
      float value = (word & BITS[i]) != 0 ? above : below;
      to[begin + i] = ADDS ? to[begin + i] + value : value;
    }
  };
  size_t whole = count / WORD_BITS * WORD_BITS;
  for (size_t i = 0; i < whole; i += WORD_BITS) next(i, WORD_BITS);
  if (whole < count) next(whole, count - whole);
}

double squares(const float* __restrict__ values, size_t count) {
  double parts[SUM_PARTS] = {};
  size_t whole = count / SUM_PARTS * SUM_PARTS;
  for (size_t i = 0; i < whole; i += SUM_PARTS) {
    for (size_t j = 0; j < SUM_PARTS; j++)
      parts[j] += double(values[i + j]) * double(values[i + j]);
  }
  for (size_t i = whole; i < count; i++) {
    parts[i - whole] += double(values[i]) * double(values[i]);
  }
  double sum = 0;
  for (size_t j = 0; j < SUM_PARTS; j++) sum += parts[j];
  return sum;
}

void accumulate(const float* __restrict__ gradient, float* __restrict__ u, float* __restrict__ v,
    size_t count, float momentum, float scale) {
  for (size_t i = 0; i < count; i++) {
    u[i] = momentum * u[i] + scale * gradient[i];
    v[i] += u[i];
  }
}

void addScaled(
    const float* __restrict__ gradient, float* __restrict__ v, size_t count, float scale) {
  for (size_t i = 0; i < count; i++) v[i] += scale * gradient[i];
}

void maxima(const float* __restrict__ values, size_t rows, size_t columns,
    uint32_t* __restrict__ magnitudes) {
  for (size_t c = 0; c < columns; c++) magnitudes[c] = 0;
  for (size_t r = 0; r < rows; r++) {
    const float* __restrict__ row = values + r * columns;
    for (size_t c = 0; c < columns; c++) {
      // Signed, because some instruction sets have no maximum of unsigned numbers.
      int32_t magnitude = int32_t(bitsOf(row[c]) & MAGNITUDE), largest = int32_t(magnitudes[c]);
      magnitudes[c] = uint32_t(magnitude > largest ? magnitude : largest);
    }
  }
}

size_t collect(const float* __restrict__ values, size_t count, uint32_t least,
    uint32_t* __restrict__ positions) {
  // Checks whole blocks first, because most have no such value.
  constexpr size_t BLOCK = 32;
  size_t found = 0;
  auto look = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; i++) {
      positions[found] = uint32_t(i);
      found += (bitsOf(values[i]) & MAGNITUDE) >= least;
    }
  };
  size_t whole = count / BLOCK * BLOCK;
  for (size_t i = 0; i < whole; i += BLOCK) {
    int32_t any = 0;
    for (size_t j = 0; j < BLOCK; j++) {
      any |= int32_t(bitsOf(values[i + j]) & MAGNITUDE) >= int32_t(least) ? -1 : 0;
    }
    if (any != 0) look(i, i + BLOCK);
  }
  look(whole, count);
  return found;
}

bool toMultiples(const float* __restrict__ values, float unit, int32_t most,
    int32_t* __restrict__ multiples, size_t count) {
  // Floats of this size have no fraction, so adding this one rounds.
  constexpr float ROUNDS = 0x1.8p23f;
  float inverse = 1 / unit;
  int32_t wrong = 0;
  for (size_t i = 0; i < count; i++) {
    float multiple = (values[i] * inverse + ROUNDS) - ROUNDS;
    bool fits = multiple <= float(most) && multiple >= float(-most) && multiple * unit == values[i];
    multiples[i] = int32_t(fits ? multiple : 0.0f);
    wrong |= fits ? 0 : 1;
  }
  return wrong == 0;
}

constexpr Loops loopsCalled(const char* name) {
  return {
      .name = name,
      .toFloat16 = toHalves<rpc::codec::toFloat16>,
      .toBFloat16 = toHalves<rpc::codec::toBFloat16>,
      .fromFloat16 = fromHalves<rpc::codec::fromFloat16>,
      .fromBFloat16 = fromHalves<rpc::codec::fromBFloat16>,
      .addFloat16 = addHalves<rpc::codec::fromFloat16>,
      .addBFloat16 = addHalves<rpc::codec::fromBFloat16>,
      .toTwoBit = toTwoBit,
      .fromTwoBit = fromTwoBit,
      .addTwoBit = addTwoBit,
      .toOneBit = toOneBit,
      .fromOneBit = fromBits<false>,
      .addOneBit = fromBits<true>,
      .squares = squares,
      .accumulate = accumulate,
      .addScaled = addScaled,
      .maxima = maxima,
      .collect = collect,
      .toMultiples = toMultiples,
  };
}

}  // namespace
}  // namespace rpc::codec

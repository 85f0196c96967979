// configs/language/random.h: the random numbers of a `seed`: a pure function of (seed, purpose,
// place).
#pragma once

#include <cmath>
#include <cstdint>

namespace configs {

// The purpose of a number. Two purposes never share numbers. Adding a purpose therefore does not
// change the numbers of others.
enum class Purpose : uint64_t {
  ORDER = 1,
  CROP = 2,
  MIRROR = 3,
  INITIAL_VALUES = 4,
  DROPOUT = 5,
  SWEEP = 6,
  COLOURS = 7,
  CUTOUT = 8,
  CHUNKS = 9
};

// The random numbers of one place, in order. They are the same on every machine and for every
// caller, and do not depend on earlier draws.
//
// `a` and `b` name the place: a pass and a record, a key, or a layer. The generator is SplitMix64
// (Steele, Lea, Flood 2014), started from a hash of the four words.
class Random {
public:
  Random(uint64_t seed, Purpose purpose, uint64_t a = 0, uint64_t b = 0)
      : state(mix(mix(mix(mix(seed) ^ static_cast<uint64_t>(purpose)) ^ a) ^ b)) {}

  uint64_t next() { return mix(state += 0x9e3779b97f4a7c15ull); }

  // Uniform in 0 … n-1, for n > 0. The bias of the multiplication is below n / 2^32.
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(((next() >> 32) * n) >> 32); }

  // Uniform in [0, 1), with 53 bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  // Standard normal, by Box and Muller. The second number of each pair is thrown away, so that each
  // draw is one call.
  double normal() {
    double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(6.283185307179586476925 * uniform());
  }

private:
  static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
  }
  uint64_t state;
};

}  // namespace configs

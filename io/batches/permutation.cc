#include "io/batches/permutation.h"

#include <kj/debug.h>

#include <bit>
#include <utility>

#include "configs/language/random.h"

namespace io {

namespace {

uint64_t mask(uint32_t bits) {
  return (uint64_t(1) << bits) - 1;
}

// The end of MurmurHash3 (Appleby 2011): each bit of the result depends on each bit of `x`.
uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdull;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ull;
  return x ^ (x >> 33);
}

}  // namespace

Permutation::Permutation(uint64_t n, uint64_t seed, uint64_t a, uint64_t b): n(n) {
  KJ_REQUIRE(n > 0 && n <= uint64_t(1) << 62, n);
  uint32_t bits = std::bit_width(n - 1);
  highBits = (bits + 1) / 2;
  lowBits = bits / 2;
  configs::Random random(seed, configs::Purpose::ORDER, a, b);
  for (auto& key: keys) key = random.next();
}

uint64_t Permutation::at(uint64_t place) const {
  KJ_IREQUIRE(place < n);
  do place = permuted(place);
  while (place >= n);
  return place;
}

uint64_t Permutation::permuted(uint64_t number) const {
  uint32_t upperBits = highBits, otherBits = lowBits;
  uint64_t upper = number >> lowBits, other = number & mask(lowBits);
  for (auto key: keys) {
    uint64_t next = upper ^ (mixed(key ^ other) & mask(upperBits));
    upper = other;
    other = next;
    std::swap(upperBits, otherBits);
  }
  return upper << lowBits | other;
}

}  // namespace io

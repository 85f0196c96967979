// io/batches/permutation.h: a random order of many numbers that takes no memory.
#pragma once

#include <cstdint>

namespace io {

// A permutation of 0 … n-1, drawn from a seed and two more numbers. Any place can be computed
// without the earlier ones. A Feistel network permutes 2^k numbers. A result that is not below n is
// permuted again (Black and Rogaway 2002, "Ciphers with Arbitrary Finite Domains", cycle walking).
// The same on every machine.
class Permutation {
public:
  Permutation(uint64_t n, uint64_t seed, uint64_t a, uint64_t b);

  // Returns the number at `place`, which is below n.
  uint64_t at(uint64_t place) const;

private:
  // Even, so that the halves end in their original places.
  static constexpr uint32_t ROUNDS = 8;

  uint64_t permuted(uint64_t number) const;

  uint64_t n;
  uint32_t highBits, lowBits;  // of the two halves
  uint64_t keys[ROUNDS];
};

}  // namespace io

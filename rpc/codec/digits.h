// rpc/codec/digits.h: small numbers packed as digits of 32-bit words. Pure.
#pragma once

#include <kj/common.h>

#include <cstdint>

namespace rpc::codec {

using kj::uint;

// Packs numbers below `radix`, as many per word as fit: a word is d0 + d1·radix + d2·radix² + …
class Digits {
public:
  // 2 ≤ radix ≤ 2^31.
  explicit constexpr Digits(uint32_t radix): radix(radix) {
    for (uint64_t product = radix; product <= 1ull << 32; product *= radix) perWord++;
    // Because this is rounded up, the upper half of its product with any 32-bit number is the exact
    // quotient (Lemire, Kaser and Kurz 2019, arXiv 1902.01961).
    inverse = ~uint64_t(0) / radix + 1;
  }

  uint64_t words(uint64_t count) const { return (count + perWord - 1) / perWord; }

  // Returns the word of `count` ≤ perWord numbers. number(i) returns the i-th.
  template <typename Number>
  uint32_t pack(uint64_t count, Number&& number) const {
    uint64_t word = 0;
    for (uint64_t i = count; i-- > 0;) word = word * radix + number(i);
    return uint32_t(word);
  }

  // Removes the lowest digit from `word`, and returns it.
  uint32_t take(uint32_t& word) const {
    uint32_t rest = uint32_t((unsigned __int128)(word)*inverse >> 64);
    uint32_t digit = word - rest * radix;
    word = rest;
    return digit;
  }

  // Whether `word` has no more than `count` digits.
  bool fits(uint32_t word, uint64_t count) const {
    uint64_t limit = 1;
    for (uint64_t i = 0; i < count; i++) limit *= radix;
    return word < limit;
  }

  uint32_t radix;
  uint perWord = 0;

private:
  uint64_t inverse;
};

}  // namespace rpc::codec

// rpc/codec/encoding.h: how the floats of a slice lie in a payload: the closed table. Pure.
#pragma once

#include <kj/array.h>

#include <cstdint>

#include "rpc/codec/positions.h"

namespace rpc::codec {

using kj::uint;
using Floats = kj::ArrayPtr<const float>;

// One way to write down the n floats of a slice. Numbers are little-endian; a payload begins at a
// multiple of 8 bytes.
//
// SPARSE and MULTIPLES are 8 bytes (the form of the positions; three zeros; how many values there
// are, in 4 bytes), then the values, then their positions.
struct Encoding {
  enum Kind : uint8_t {
    FLOAT32,   // 4 bytes each
    FLOAT16,   // 2 bytes each: IEEE's half, to the nearest, of two the even one
    BFLOAT16,  // 2 bytes each: the upper half of a float32, likewise
    TWO_BIT,   // 2 bits each: ±unit or 0; see Loops::toTwoBit
    SPARSE,    // those that are not 0, as `values` says
    MULTIPLES,  // m·unit with -most ≤ m ≤ most. Digits m + most of base 2·most + 1, or where zeros
                // are left out m + most (m < 0) and m + most - 1 (m > 0) of base 2·most
  } kind = FLOAT32;
  Kind values = FLOAT32;  // SPARSE: one of the first three
  float unit = 0;         // TWO_BIT, MULTIPLES
  uint most = 0;          // MULTIPLES

  // Its word in messages and in the language.
  const char* name() const;

  // Throws FAILED with what is wrong unless `payload` is `size` floats. Look before anything else.
  void check(Bytes payload, uint64_t size) const;
  // target ← what the payload says, or target ← target + that. A payload that has become another
  // one since check() writes wrong numbers, or throws, but never beside the target.
  void decode(Bytes payload, kj::ArrayPtr<float> target) const;
  void add(Bytes payload, kj::ArrayPtr<float> target) const;
};

// Memory of a payload: grows when it must, and keeps what it has.
class Buffer {
public:
  // Room for so many bytes, whose values are any.
  kj::ArrayPtr<kj::byte> resize(size_t bytes);
  Bytes bytes() const { return memory.slice(0, size); }

private:
  kj::Array<kj::byte> memory;
  size_t size = 0;
};

// Writes floats down; keeps its scratch memory. For one thread.
class Encoder {
public:
  // In `encoding`, which is not TWO_BIT (that needs a residual): the values themselves if it is
  // FLOAT32, else `buffer`, until that changes. Exact but for halves, and for the sign of a zero
  // that is left out. With MULTIPLES the values must be that.
  Bytes encode(const Encoding& encoding, Floats values, Buffer& buffer);
  // SPARSE, of the values at these positions alone, which ascend.
  Bytes encode(const Encoding& encoding, Floats values, kj::ArrayPtr<const uint32_t> positions,
      Buffer& buffer);

private:
  Bytes encodeMultiples(const Encoding& encoding, Floats values, Buffer& buffer);
  kj::ArrayPtr<const uint32_t> findNonZero(Floats values);

  kj::Array<uint32_t> positions;
  kj::Array<int32_t> multiples;
};

// A gradient as it came: floats in place, or a payload that is decoded where it is added. Refers to
// memory that must stay.
class Coded {
public:
  Coded(Floats values): bytes(values.asBytes()) {}
  Coded(const kj::Array<float>& values): Coded(values.asPtr()) {}
  Coded(const Encoding& encoding, Bytes payload): encoding(encoding), bytes(payload) {}

  // As Encoding's. The floats of the others are as many.
  void check(uint64_t size) const { encoding.check(bytes, size); }
  // The floats in place; null if they must be decoded.
  kj::Maybe<Floats> inPlace() const;
  void decode(kj::ArrayPtr<float> target) const { encoding.decode(bytes, target); }
  void add(kj::ArrayPtr<float> target) const { encoding.add(bytes, target); }

private:
  Encoding encoding;
  Bytes bytes;
};

}  // namespace rpc::codec

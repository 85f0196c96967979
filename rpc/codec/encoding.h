// rpc/codec/encoding.h: how the floats of a slice lie in a payload. Pure.
#pragma once

#include <kj/array.h>

#include <cstdint>

namespace rpc::codec {

using kj::uint;
using Bytes = kj::ArrayPtr<const kj::byte>;
using Floats = kj::ArrayPtr<const float>;

struct Encoding;

// How one number travels.
enum class Number : uint8_t {
  FLOAT32,   // 4 bytes
  FLOAT16,   // 2 bytes: IEEE's half, to the nearest, of two the even one
  BFLOAT16,  // 2 bytes: the upper half of a float32, likewise
};

// Its word in messages and in the language.
const char* nameOf(Number number);
uint bytesOf(Number number);

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

// Memory that encoders use again: as long as the longest slice so far.
struct Scratch {
  kj::Array<uint32_t> positions;
  kj::Array<int32_t> multiples;
};

// Whether a decoded payload replaces the values of its target, or is added to them.
enum class Put { SET, ADD };

// One way to write down the n floats of a slice. Each function does the work of Encoding's function
// of the same name.
struct EncodingKind {
  const char* name;
  void (*check)(const Encoding&, Bytes payload, uint64_t size);
  void (*decode)(const Encoding&, Bytes payload, kj::ArrayPtr<float> target, Put put);
  double (*expected_bytes)(const Encoding&, uint64_t size, double nonZero);
  // Null if only a Compressor writes such payloads, which keeps what they leave out.
  Bytes (*encode)(const Encoding&, Floats values, Scratch& scratch, Buffer& buffer);
};

extern const EncodingKind WHOLE;  // every value as a Number, one after the other

// A kind with the numbers that it needs. Payloads are little-endian, and begin at a multiple of 8
// bytes.
struct Encoding {
  const EncodingKind* kind = &WHOLE;
  Number numbers = Number::FLOAT32;  // how single values are written down
  float unit = 0;                    // what values are multiples of, if they are
  uint most = 0;                     // how many times the unit they are at most

  // Whether a payload is the floats themselves.
  bool isFloats() const { return kind == &WHOLE && numbers == Number::FLOAT32; }

  // Throws FAILED with what is wrong unless `payload` is `size` floats. Look before anything else.
  void check(Bytes payload, uint64_t size) const { kind->check(*this, payload, size); }
  // target ← what the payload says, or target ← target + that. A payload that has become another
  // one since check() writes wrong numbers, or throws, but never beside the target.
  void decode(Bytes payload, kj::ArrayPtr<float> target) const {
    kind->decode(*this, payload, target, Put::SET);
  }
  void add(Bytes payload, kj::ArrayPtr<float> target) const {
    kind->decode(*this, payload, target, Put::ADD);
  }
  // The size of a payload of `size` floats, of which the share `nonZero` is not 0, wherever these
  // are. Exact where it does not depend on the values.
  double expected_bytes(uint64_t size, double nonZero) const {
    return kind->expected_bytes(*this, size, nonZero);
  }
};

// Writes floats down; keeps its scratch memory. For one thread.
class Encoder {
public:
  // In `encoding`, whose kind can encode: the values themselves if they are floats, else `buffer`,
  // until that changes. Exact but for halves, and for the sign of a zero that is left out.
  Bytes encode(const Encoding& encoding, Floats values, Buffer& buffer);

private:
  Scratch scratch;
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

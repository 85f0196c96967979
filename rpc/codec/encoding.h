// rpc/codec/encoding.h: how the floats of a slice are written into a payload. Pure.
#pragma once

#include <kj/array.h>

#include <cstdint>

namespace rpc::codec {

using kj::uint;
using Bytes = kj::ArrayPtr<const kj::byte>;
using Floats = kj::ArrayPtr<const float>;

struct Encoding;

// How one number is encoded.
enum class Number : uint8_t {
  FLOAT32,   // 4 bytes
  FLOAT16,   // 2 bytes: IEEE's half, rounded to nearest, ties to even
  BFLOAT16,  // 2 bytes: the upper half of a float32, rounded in the same way
};

// Returns the word for it in messages and in experiment files.
const char* nameOf(Number number);
uint bytesOf(Number number);

// Memory of a payload. It grows when necessary, and never shrinks.
class Buffer {
public:
  // Returns room for `bytes` bytes, whose content is undefined.
  kj::ArrayPtr<kj::byte> resize(size_t bytes);
  Bytes bytes() const { return memory.slice(0, size); }

private:
  kj::Array<kj::byte> memory;
  size_t size = 0;
};

// Memory that encoders reuse. Its arrays are as long as the longest slice so far.
struct Scratch {
  kj::Array<uint32_t> positions;
  kj::Array<int32_t> multiples;
};

// Whether a decoded payload replaces the values of its target, or is added to them.
enum class Put { SET, ADD };

// One way to encode the floats of a slice. Each function implements the function of the same name
// in Encoding or Encoder.
struct EncodingKind {
  const char* name;
  void (*check)(const Encoding&, Bytes payload, uint64_t size);
  void (*decode)(const Encoding&, Bytes payload, kj::ArrayPtr<float> target, Put put);
  double (*expected_bytes)(const Encoding&, uint64_t size, double nonZero);
  // Null if only a Compressor can write such payloads, because it keeps the values that they leave
  // out.
  Bytes (*encode)(const Encoding&, Floats values, Scratch& scratch, Buffer& buffer);
};

extern const EncodingKind WHOLE;  // every value as a Number, one after another

// A kind of encoding with its parameters. Payloads are little-endian, and begin at a multiple of 8
// bytes.
struct Encoding {
  const EncodingKind* kind = &WHOLE;
  Number numbers = Number::FLOAT32;  // how single values are encoded
  float unit = 0;                    // if all values are multiples of a unit: the unit
  uint most = 0;                     // the largest multiple

  // Whether a payload is the floats themselves.
  bool isFloats() const { return kind == &WHOLE && numbers == Number::FLOAT32; }

  // Throws FAILED with the reason unless `payload` holds `size` floats. Call this before any other
  // function.
  void check(Bytes payload, uint64_t size) const { kind->check(*this, payload, size); }
  // target ← the payload's values, or target ← target + the payload's values. If the payload has
  // changed since check(), these functions write wrong numbers or throw, but never write outside
  // the target.
  void decode(Bytes payload, kj::ArrayPtr<float> target) const {
    kind->decode(*this, payload, target, Put::SET);
  }
  void add(Bytes payload, kj::ArrayPtr<float> target) const {
    kind->decode(*this, payload, target, Put::ADD);
  }
  // Returns the expected size of a payload of `size` floats, of which the share `nonZero` is not 0,
  // at random positions. Exact if the size does not depend on the values.
  double expected_bytes(uint64_t size, double nonZero) const {
    return kind->expected_bytes(*this, size, nonZero);
  }
};

// Encodes floats. Keeps its scratch memory. For one thread.
class Encoder {
public:
  // Encodes `values` in `encoding`, whose kind must have a function for that. With float32, returns
  // the values themselves. Otherwise returns the bytes of `buffer`, which are valid until it
  // changes. Exact, except for halves and for the sign of a zero that is left out.
  Bytes encode(const Encoding& encoding, Floats values, Buffer& buffer);

private:
  Scratch scratch;
};

// A gradient as it arrived: floats in place, or a payload that is decoded when it is added. Refers
// to memory that must outlive this object.
class Coded {
public:
  Coded(Floats values): bytes(values.asBytes()) {}
  Coded(const kj::Array<float>& values): Coded(values.asPtr()) {}
  Coded(const Encoding& encoding, Bytes payload): encoding(encoding), bytes(payload) {}

  // Does what Encoding::check() does. All floats and targets below must have the size that was
  // checked.
  void check(uint64_t size) const { encoding.check(bytes, size); }
  // Returns the floats in place. Null if they must be decoded.
  kj::Maybe<Floats> inPlace() const;
  void decode(kj::ArrayPtr<float> target) const { encoding.decode(bytes, target); }
  void add(kj::ArrayPtr<float> target) const { encoding.add(bytes, target); }

private:
  Encoding encoding;
  Bytes bytes;
};

}  // namespace rpc::codec

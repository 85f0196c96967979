#include "rpc/codec/encoding.h"

#include <kj/debug.h>

#include <cstring>

#include "rpc/codec/loops.h"

namespace rpc::codec {

namespace {

void checkWhole(const Encoding& encoding, Bytes payload, uint64_t size) {
  uint64_t expected = size * bytesOf(encoding.numbers);
  KJ_REQUIRE(payload.size() == expected, "a payload does not have its slice's size", payload.size(),
      expected, nameOf(encoding.numbers));
}

void decodeFloats(const float* values, kj::ArrayPtr<float> to, Put put) {
  if (put == Put::SET) {
    memcpy(to.begin(), values, to.size() * sizeof(float));
  } else {
    for (size_t i = 0, n = to.size(); i < n; i++) to[i] += values[i];
  }
}

void decodeWhole(const Encoding& encoding, Bytes payload, kj::ArrayPtr<float> to, Put put) {
  auto halves = reinterpret_cast<const uint16_t*>(payload.begin());
  bool sets = put == Put::SET;
  switch (encoding.numbers) {
    case Number::FLOAT32:
      return decodeFloats(reinterpret_cast<const float*>(payload.begin()), to, put);
    case Number::FLOAT16:
      return (sets ? loops().fromFloat16 : loops().addFloat16)(halves, to.begin(), to.size());
    case Number::BFLOAT16:
      return (sets ? loops().fromBFloat16 : loops().addBFloat16)(halves, to.begin(), to.size());
  }
}

double expectedWhole_bytes(const Encoding& encoding, uint64_t size, double) {
  return double(bytesOf(encoding.numbers)) * size;
}

Bytes encodeWhole(const Encoding& encoding, Floats values, Scratch&, Buffer& buffer) {
  if (encoding.isFloats()) return values.asBytes();
  auto to = reinterpret_cast<uint16_t*>(buffer.resize(2 * values.size()).begin());
  auto loop = encoding.numbers == Number::FLOAT16 ? loops().toFloat16 : loops().toBFloat16;
  loop(values.begin(), to, values.size());
  return buffer.bytes();
}

}  // namespace

constinit const EncodingKind WHOLE{
    "whole", checkWhole, decodeWhole, expectedWhole_bytes, encodeWhole};

const char* nameOf(Number number) {
  switch (number) {
    case Number::FLOAT32:
      return "float32";
    case Number::FLOAT16:
      return "float16";
    case Number::BFLOAT16:
      return "bfloat16";
  }
  KJ_UNREACHABLE;
}

uint bytesOf(Number number) {
  return number == Number::FLOAT32 ? 4 : 2;
}

kj::ArrayPtr<kj::byte> Buffer::resize(size_t bytes) {
  if (memory.size() < bytes) memory = kj::heapArray<kj::byte>(bytes);
  size = bytes;
  return memory.slice(0, size);
}

Bytes Encoder::encode(const Encoding& encoding, Floats values, Buffer& buffer) {
  KJ_REQUIRE(encoding.kind->encode != nullptr, "only a compressor writes this encoding",
      encoding.kind->name);
  return encoding.kind->encode(encoding, values, scratch, buffer);
}

kj::Maybe<Floats> Coded::inPlace() const {
  if (!encoding.isFloats()) return nullptr;
  return kj::arrayPtr(reinterpret_cast<const float*>(bytes.begin()), bytes.size() / sizeof(float));
}

}  // namespace rpc::codec

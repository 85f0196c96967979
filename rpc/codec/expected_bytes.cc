#include "rpc/codec/expected_bytes.h"

#include <kj/debug.h>
#include <math.h>

#include "rpc/codec/digits.h"

namespace rpc::codec {

namespace {

constexpr double HEADER_BYTES = 8;
constexpr double WORD_BYTES = 4;

// A gap that is drawn at random passes `skip` zeros, and that again and again, so many times.
double skips(double nonZero, double skip) {
  double passed = pow(1 - nonZero, skip);
  return passed < 1 ? passed / (1 - passed) : 0;
}

// In the shortest form but ALL.
double positionBytes(uint64_t size, double nonZero) {
  double count = nonZero * size;
  double bitmap = ceil(size / 64.0) * 8;
  double gaps8 = count * (1 + skips(nonZero, 0xff));
  double gaps16 = 2 * count * (1 + skips(nonZero, 0xffff));
  return kj::min(bitmap, kj::min(gaps8, gaps16));
}

double digitBytes(uint32_t radix, double count) {
  return ceil(count / Digits(radix).perWord) * WORD_BYTES;
}

}  // namespace

double expected_bytes(const Encoding& encoding, uint64_t size, double nonZero) {
  double count = nonZero * size;
  bool isFull = count >= size;
  switch (encoding.kind) {
    case Encoding::FLOAT32:
      return 4.0 * size;
    case Encoding::FLOAT16:
    case Encoding::BFLOAT16:
      return 2.0 * size;
    case Encoding::TWO_BIT:
      return ceil(size / 16.0) * WORD_BYTES;
    case Encoding::SPARSE:
      return HEADER_BYTES + expected_bytes({.kind = encoding.values}, 1, 1) * count +
             (isFull ? 0 : positionBytes(size, nonZero));
    case Encoding::MULTIPLES: {
      double all = digitBytes(2 * encoding.most + 1, size);
      double few = digitBytes(2 * encoding.most, count) + positionBytes(size, nonZero);
      return HEADER_BYTES + kj::min(all, few);
    }
  }
  KJ_UNREACHABLE;
}

}  // namespace rpc::codec

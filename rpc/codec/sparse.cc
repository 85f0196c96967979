#include "rpc/codec/sparse.h"

#include <kj/debug.h>
#include <math.h>

#include <cstring>

#include "rpc/codec/digits.h"
#include "rpc/codec/half.h"
#include "rpc/codec/loops.h"
#include "rpc/codec/positions.h"

namespace rpc::codec {

namespace {

constexpr size_t HEADER_BYTES = 8;

template <typename T>
kj::ArrayPtr<const T> as(Bytes bytes) {
  return kj::arrayPtr(reinterpret_cast<const T*>(bytes.begin()), bytes.size() / sizeof(T));
}

Digits digitsOf(const Encoding& encoding, Form form) {
  return Digits(2 * encoding.most + (form == Form::ALL ? 1 : 0));
}

uint64_t valueBytes(const Encoding& encoding, Form form, uint64_t count) {
  if (encoding.kind == &SPARSE) return count * bytesOf(encoding.numbers);
  return digitsOf(encoding, form).words(count) * sizeof(uint32_t);
}

// The parts of a payload.
struct Parts {
  Form form;
  uint64_t count;  // of values
  Bytes values;
  Bytes positions;

  static Parts of(const Encoding& encoding, Bytes payload, uint64_t size) {
    KJ_REQUIRE(payload.size() >= HEADER_BYTES, "a sparse payload is cut off", payload.size());
    kj::byte header[HEADER_BYTES];
    memcpy(header, payload.begin(), sizeof(header));
    uint32_t count;
    memcpy(&count, header + 4, sizeof(count));
    bool known = header[0] < FORMS && header[1] == 0 && header[2] == 0 && header[3] == 0;
    KJ_REQUIRE(known, "a sparse payload's positions are of an unknown form", header[0]);
    KJ_REQUIRE(count <= size, "a payload has more values than its slice", count, size);
    auto form = Form(header[0]);
    auto rest = payload.slice(HEADER_BYTES, payload.size());
    uint64_t own = valueBytes(encoding, form, count);
    KJ_REQUIRE(own <= rest.size(), "a sparse payload is cut off", own, rest.size());
    return {form, count, rest.slice(0, own), rest.slice(own, rest.size())};
  }
};

// Makes room in `buffer` for a payload with the given number of bytes after the header. Returns
// these bytes.
kj::ArrayPtr<kj::byte> begin(Buffer& buffer, Form form, uint64_t count, uint64_t bytes) {
  auto to = buffer.resize(HEADER_BYTES + bytes);
  memset(to.begin(), 0, HEADER_BYTES);
  to[0] = kj::byte(form);
  uint32_t number = count;
  memcpy(to.begin() + 4, &number, sizeof(number));
  return to.slice(HEADER_BYTES, to.size());
}

kj::ArrayPtr<const uint32_t> findNonZero(Floats values, Scratch& scratch) {
  auto& positions = scratch.positions;
  if (positions.size() < values.size()) positions = kj::heapArray<uint32_t>(values.size());
  size_t found = loops().collect(values.begin(), values.size(), 1, positions.begin());
  return positions.slice(0, found);
}

void setZero(kj::ArrayPtr<float> to) {
  memset(to.begin(), 0, to.size() * sizeof(float));
}

// Returns how often a random gap is expected to skip `skip` zeros.
double skips(double nonZero, double skip) {
  double passed = pow(1 - nonZero, skip);
  return passed < 1 ? passed / (1 - passed) : 0;
}

// Uses the shortest form other than ALL.
double expectedPositions_bytes(uint64_t size, double nonZero) {
  double count = nonZero * size;
  double bitmap = ceil(size / 64.0) * 8;
  double gaps8 = count * (1 + skips(nonZero, 0xff));
  double gaps16 = 2 * count * (1 + skips(nonZero, 0xffff));
  return kj::min(bitmap, kj::min(gaps8, gaps16));
}

void checkSparse(const Encoding& encoding, Bytes payload, uint64_t size) {
  auto parts = Parts::of(encoding, payload, size);
  checkPositions(parts.form, parts.positions, parts.count, size);
}

void decodeSparse(const Encoding& encoding, Bytes payload, kj::ArrayPtr<float> to, Put put) {
  if (put == Put::SET) setZero(to);
  auto parts = Parts::of(encoding, payload, to.size());
  auto each = [&](auto&& value) {
    forEachPosition(parts.form, parts.positions, parts.count, to.size(),
        [&](uint64_t i, uint64_t position) { to[position] += value(i); });
  };
  auto floats = as<float>(parts.values);
  auto halves = as<uint16_t>(parts.values);
  switch (encoding.numbers) {
    case Number::FLOAT32:
      return each([&](uint64_t i) { return floats[i]; });
    case Number::FLOAT16:
      return each([&](uint64_t i) { return fromFloat16(halves[i]); });
    case Number::BFLOAT16:
      return each([&](uint64_t i) { return fromBFloat16(halves[i]); });
  }
}

double expectedSparse_bytes(const Encoding& encoding, uint64_t size, double nonZero) {
  double count = nonZero * size;
  return HEADER_BYTES + bytesOf(encoding.numbers) * count +
         (count >= size ? 0 : expectedPositions_bytes(size, nonZero));
}

Bytes encodeSparse(const Encoding& encoding, Floats values, Scratch& scratch, Buffer& buffer) {
  return encodeAt(findNonZero(values, scratch), encoding.numbers, values, buffer);
}

void checkMultiples(const Encoding& encoding, Bytes payload, uint64_t size) {
  checkSparse(encoding, payload, size);
  auto parts = Parts::of(encoding, payload, size);
  auto digits = digitsOf(encoding, parts.form);
  uint64_t left = parts.count;
  for (uint32_t word: as<uint32_t>(parts.values)) {
    uint64_t own = kj::min(left, uint64_t(digits.perWord));
    KJ_REQUIRE(digits.fits(word, own), "digits of a payload are too large", word, own);
    left -= own;
  }
}

void decodeMultiples(const Encoding& encoding, Bytes payload, kj::ArrayPtr<float> to, Put put) {
  if (put == Put::SET) setZero(to);
  auto parts = Parts::of(encoding, payload, to.size());
  auto digits = digitsOf(encoding, parts.form);
  auto words = as<uint32_t>(parts.values).begin();
  bool zeros = parts.form == Form::ALL;
  int32_t most = encoding.most;
  uint32_t word = 0;
  uint left = 0;  // digits of `word`
  forEachPosition(
      parts.form, parts.positions, parts.count, to.size(), [&](uint64_t, uint64_t position) {
        if (left == 0) {
          word = *words++;
          left = digits.perWord;
        }
        left--;
        int32_t multiple = int32_t(digits.take(word)) - most;
        if (!zeros && multiple >= 0) multiple++;
        to[position] += float(multiple) * encoding.unit;
      });
}

double expectedMultiples_bytes(const Encoding& encoding, uint64_t size, double nonZero) {
  auto digits_bytes = [&](Form form, double count) {
    return ceil(count / digitsOf(encoding, form).perWord) * sizeof(uint32_t);
  };
  double few = digits_bytes(Form::BITMAP, nonZero * size) + expectedPositions_bytes(size, nonZero);
  return HEADER_BYTES + kj::min(digits_bytes(Form::ALL, size), few);
}

Bytes encodeMultiples(const Encoding& encoding, Floats values, Scratch& scratch, Buffer& buffer) {
  auto& multiples = scratch.multiples;
  if (multiples.size() < values.size()) multiples = kj::heapArray<int32_t>(values.size());
  int32_t most = encoding.most;
  KJ_REQUIRE(
      loops().toMultiples(values.begin(), encoding.unit, most, multiples.begin(), values.size()),
      "a value is not a multiple of the unit", encoding.unit, most);
  auto sent = findNonZero(values, scratch);
  auto [form, bytes] = smallestForm(sent, values.size());
  uint64_t own = valueBytes(encoding, form, sent.size());
  uint64_t all = valueBytes(encoding, Form::ALL, values.size());
  if (all <= own + bytes) form = Form::ALL, own = all, bytes = 0;
  uint64_t count = form == Form::ALL ? values.size() : sent.size();

  auto to = begin(buffer, form, count, own + bytes);
  auto digits = digitsOf(encoding, form);
  auto words = reinterpret_cast<uint32_t*>(to.begin());
  for (uint64_t begin = 0; begin < count; begin += digits.perWord) {
    uint64_t own = kj::min(count - begin, uint64_t(digits.perWord));
    *words++ = digits.pack(own, [&, isWhole = form == Form::ALL](uint64_t i) -> uint32_t {
      if (isWhole) return multiples[begin + i] + most;
      int32_t multiple = multiples[sent[begin + i]];
      return multiple + most - (multiple > 0 ? 1 : 0);
    });
  }
  if (form != Form::ALL) writePositions(form, sent, values.size(), to.slice(own, to.size()));
  return buffer.bytes();
}

}  // namespace

constinit const EncodingKind SPARSE{
    "sparse", checkSparse, decodeSparse, expectedSparse_bytes, encodeSparse};
constinit const EncodingKind MULTIPLES{
    "multiples", checkMultiples, decodeMultiples, expectedMultiples_bytes, encodeMultiples};

Bytes encodeAt(
    kj::ArrayPtr<const uint32_t> positions, Number numbers, Floats values, Buffer& buffer) {
  KJ_REQUIRE(values.size() <= uint32_t(kj::maxValue));
  auto [form, bytes] = smallestForm(positions, values.size());
  uint64_t own = positions.size() * bytesOf(numbers);
  auto to = begin(buffer, form, positions.size(), own + bytes);
  auto floats = reinterpret_cast<float*>(to.begin());
  auto halves = reinterpret_cast<uint16_t*>(to.begin());
  for (auto i: kj::indices(positions)) {
    float value = values[positions[i]];
    switch (numbers) {
      case Number::FLOAT32:
        floats[i] = value;
        break;
      case Number::FLOAT16:
        halves[i] = toFloat16(value);
        break;
      case Number::BFLOAT16:
        halves[i] = toBFloat16(value);
        break;
    }
  }
  writePositions(form, positions, values.size(), to.slice(own, to.size()));
  return buffer.bytes();
}

}  // namespace rpc::codec

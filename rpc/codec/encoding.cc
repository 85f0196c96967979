#include "rpc/codec/encoding.h"

#include <kj/debug.h>

#include <cstring>

#include "rpc/codec/digits.h"
#include "rpc/codec/half.h"
#include "rpc/codec/loops.h"

namespace rpc::codec {

namespace {

enum class Put { SET, ADD };

template <typename T>
kj::ArrayPtr<const T> as(Bytes bytes) {
  return kj::arrayPtr(reinterpret_cast<const T*>(bytes.begin()), bytes.size() / sizeof(T));
}

uint bytesOf(Encoding::Kind kind) {
  return kind == Encoding::FLOAT32 ? 4 : 2;
}

// The payload of an encoding with a header, taken apart.
struct Parts {
  static constexpr size_t HEADER_BYTES = 8;

  Form form;
  uint64_t count;  // of values
  Bytes values;
  Bytes positions;

  static Parts of(const Encoding& encoding, Bytes payload, uint64_t size);
  static kj::ArrayPtr<kj::byte> writeHeader(Form form, uint64_t count, kj::ArrayPtr<kj::byte> to);
};

Digits digitsOf(const Encoding& encoding, Form form) {
  return Digits(2 * encoding.most + (form == Form::ALL ? 1 : 0));
}

uint64_t valueBytes(const Encoding& encoding, Form form, uint64_t count) {
  if (encoding.kind == Encoding::SPARSE) return count * bytesOf(encoding.values);
  return digitsOf(encoding, form).words(count) * sizeof(uint32_t);
}

Parts Parts::of(const Encoding& encoding, Bytes payload, uint64_t size) {
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

kj::ArrayPtr<kj::byte> Parts::writeHeader(Form form, uint64_t count, kj::ArrayPtr<kj::byte> to) {
  memset(to.begin(), 0, HEADER_BYTES);
  to[0] = kj::byte(form);
  uint32_t number = count;
  memcpy(to.begin() + 4, &number, sizeof(number));
  return to.slice(HEADER_BYTES, to.size());
}

void checkWhole(const Encoding& encoding, Bytes payload, uint64_t size) {
  uint64_t expected = size * bytesOf(encoding.kind);
  KJ_REQUIRE(payload.size() == expected, "a payload does not have its slice's size", payload.size(),
      expected, encoding.name());
}

void checkTwoBit(const Encoding&, Bytes payload, uint64_t size) {
  auto words = as<uint32_t>(payload);
  KJ_REQUIRE(payload.size() == (size + 15) / 16 * sizeof(uint32_t),
      "a payload does not have its slice's size", payload.size(), size, "2bit");
  uint32_t wrong = 0;
  for (uint32_t word: words) wrong |= word & ~(word >> 1) & 0x55555555;
  KJ_REQUIRE(wrong == 0, "there is no two-bit code 01");
  for (uint64_t i = size; i < words.size() * 16; i++) {
    KJ_REQUIRE((payload[i / 4] >> (6 - 2 * (i % 4)) & 3) == 0, "codes go on behind the slice", i);
  }
}

void checkSparse(const Encoding& encoding, Bytes payload, uint64_t size) {
  auto parts = Parts::of(encoding, payload, size);
  checkPositions(parts.form, parts.positions, parts.count, size);
}

void checkMultiples(const Encoding& encoding, Bytes payload, uint64_t size) {
  auto parts = Parts::of(encoding, payload, size);
  checkPositions(parts.form, parts.positions, parts.count, size);
  auto digits = digitsOf(encoding, parts.form);
  uint64_t left = parts.count;
  for (uint32_t word: as<uint32_t>(parts.values)) {
    uint64_t own = kj::min(left, uint64_t(digits.perWord));
    KJ_REQUIRE(digits.fits(word, own), "digits of a payload are too large", word, own);
    left -= own;
  }
}

void decodeFloat32(const Encoding&, Bytes payload, kj::ArrayPtr<float> to, Put put) {
  auto values = as<float>(payload);
  if (put == Put::SET) {
    memcpy(to.begin(), values.begin(), to.size() * sizeof(float));
  } else {
    for (size_t i = 0, n = to.size(); i < n; i++) to[i] += values[i];
  }
}

void decodeFloat16(const Encoding&, Bytes payload, kj::ArrayPtr<float> to, Put put) {
  auto loop = put == Put::SET ? loops().fromFloat16 : loops().addFloat16;
  loop(as<uint16_t>(payload).begin(), to.begin(), to.size());
}

void decodeBFloat16(const Encoding&, Bytes payload, kj::ArrayPtr<float> to, Put put) {
  auto loop = put == Put::SET ? loops().fromBFloat16 : loops().addBFloat16;
  loop(as<uint16_t>(payload).begin(), to.begin(), to.size());
}

void decodeTwoBit(const Encoding& encoding, Bytes payload, kj::ArrayPtr<float> to, Put put) {
  auto loop = put == Put::SET ? loops().fromTwoBit : loops().addTwoBit;
  loop(as<uint32_t>(payload).begin(), to.begin(), to.size(), encoding.unit);
}

void setZero(kj::ArrayPtr<float> to) {
  memset(to.begin(), 0, to.size() * sizeof(float));
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
  switch (encoding.values) {
    case Encoding::FLOAT16:
      return each([&](uint64_t i) { return fromFloat16(halves[i]); });
    case Encoding::BFLOAT16:
      return each([&](uint64_t i) { return fromBFloat16(halves[i]); });
    default:
      return each([&](uint64_t i) { return floats[i]; });
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

struct Row {
  const char* name;
  void (*check)(const Encoding&, Bytes, uint64_t size);
  void (*decode)(const Encoding&, Bytes, kj::ArrayPtr<float>, Put);
};

// In the order of Encoding::Kind.
constexpr Row ROWS[] = {
    {"float32", checkWhole, decodeFloat32},
    {"float16", checkWhole, decodeFloat16},
    {"bfloat16", checkWhole, decodeBFloat16},
    {"2bit", checkTwoBit, decodeTwoBit},
    {"sparse", checkSparse, decodeSparse},
    {"multiples", checkMultiples, decodeMultiples},
};

}  // namespace

const char* Encoding::name() const {
  return ROWS[kind].name;
}

void Encoding::check(Bytes payload, uint64_t size) const {
  ROWS[kind].check(*this, payload, size);
}

void Encoding::decode(Bytes payload, kj::ArrayPtr<float> target) const {
  ROWS[kind].decode(*this, payload, target, Put::SET);
}

void Encoding::add(Bytes payload, kj::ArrayPtr<float> target) const {
  ROWS[kind].decode(*this, payload, target, Put::ADD);
}

kj::ArrayPtr<kj::byte> Buffer::resize(size_t bytes) {
  if (memory.size() < bytes) memory = kj::heapArray<kj::byte>(bytes);
  size = bytes;
  return memory.slice(0, size);
}

Bytes Encoder::encode(const Encoding& encoding, Floats values, Buffer& buffer) {
  switch (encoding.kind) {
    case Encoding::FLOAT32:
      return values.asBytes();
    case Encoding::FLOAT16:
    case Encoding::BFLOAT16: {
      auto to = reinterpret_cast<uint16_t*>(buffer.resize(2 * values.size()).begin());
      auto loop = encoding.kind == Encoding::FLOAT16 ? loops().toFloat16 : loops().toBFloat16;
      loop(values.begin(), to, values.size());
      return buffer.bytes();
    }
    case Encoding::SPARSE:
      return encode(encoding, values, findNonZero(values), buffer);
    case Encoding::MULTIPLES:
      return encodeMultiples(encoding, values, buffer);
    case Encoding::TWO_BIT:
      break;
  }
  KJ_FAIL_REQUIRE("two-bit codes need a residual");
}

Bytes Encoder::encode(const Encoding& encoding, Floats values,
    kj::ArrayPtr<const uint32_t> positions, Buffer& buffer) {
  KJ_REQUIRE(encoding.kind == Encoding::SPARSE && values.size() <= uint32_t(kj::maxValue));
  auto [form, bytes] = smallestForm(positions, values.size());
  uint64_t own = valueBytes(encoding, form, positions.size());
  auto to =
      Parts::writeHeader(form, positions.size(), buffer.resize(Parts::HEADER_BYTES + own + bytes));
  auto floats = reinterpret_cast<float*>(to.begin());
  auto halves = reinterpret_cast<uint16_t*>(to.begin());
  for (auto i: kj::indices(positions)) {
    float value = values[positions[i]];
    switch (encoding.values) {
      case Encoding::FLOAT16:
        halves[i] = toFloat16(value);
        break;
      case Encoding::BFLOAT16:
        halves[i] = toBFloat16(value);
        break;
      default:
        floats[i] = value;
    }
  }
  writePositions(form, positions, values.size(), to.slice(own, to.size()));
  return buffer.bytes();
}

Bytes Encoder::encodeMultiples(const Encoding& encoding, Floats values, Buffer& buffer) {
  if (multiples.size() < values.size()) multiples = kj::heapArray<int32_t>(values.size());
  int32_t most = encoding.most;
  KJ_REQUIRE(
      loops().toMultiples(values.begin(), encoding.unit, most, multiples.begin(), values.size()),
      "a sum of two-bit codes is none", encoding.unit, most);
  auto sent = findNonZero(values);
  auto [form, bytes] = smallestForm(sent, values.size());
  uint64_t own = valueBytes(encoding, form, sent.size());
  uint64_t all = valueBytes(encoding, Form::ALL, values.size());
  if (all <= own + bytes) form = Form::ALL, own = all, bytes = 0;
  uint64_t count = form == Form::ALL ? values.size() : sent.size();

  auto to = Parts::writeHeader(form, count, buffer.resize(Parts::HEADER_BYTES + own + bytes));
  auto digits = digitsOf(encoding, form);
  auto words = reinterpret_cast<uint32_t*>(to.begin());
  for (uint64_t begin = 0; begin < count; begin += digits.perWord) {
    uint64_t own = kj::min(count - begin, uint64_t(digits.perWord));
    *words++ = digits.pack(own, [&](uint64_t i) -> uint32_t {
      if (form == Form::ALL) return multiples[begin + i] + most;
      int32_t multiple = multiples[sent[begin + i]];
      return multiple + most - (multiple > 0 ? 1 : 0);
    });
  }
  if (form != Form::ALL) writePositions(form, sent, values.size(), to.slice(own, to.size()));
  return buffer.bytes();
}

kj::ArrayPtr<const uint32_t> Encoder::findNonZero(Floats values) {
  if (positions.size() < values.size()) positions = kj::heapArray<uint32_t>(values.size());
  size_t found = loops().collect(values.begin(), values.size(), 1, positions.begin());
  return positions.slice(0, found);
}

kj::Maybe<Floats> Coded::inPlace() const {
  if (encoding.kind != Encoding::FLOAT32) return nullptr;
  return as<float>(bytes);
}

}  // namespace rpc::codec

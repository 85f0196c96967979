#include "io/datasets/mat_file.h"

#include <kj/debug.h>
#include <kj/vector.h>
#include <zlib.h>

#include <cstdint>
#include <cstring>

#include "configs/language/failure.h"

namespace io {

namespace {

using Bytes = kj::ArrayPtr<const kj::byte>;

constexpr size_t HEADER_BYTES = 128;
// ImageNet's table has 300 KB.
constexpr size_t UNPACKED_BYTES_MAX = size_t(1) << 26;

// Types of data elements, and classes of arrays. The format has more.
enum Type : uint32_t {
  INT8 = 1,
  UINT8 = 2,
  INT16 = 3,
  UINT16 = 4,
  INT32 = 5,
  UINT32 = 6,
  SINGLE = 7,
  DOUBLE = 9,
  MATRIX = 14,
  COMPRESSED = 15,
  UTF8 = 16,
};
enum Class : uint32_t { STRUCT_CLASS = 2, CHAR_CLASS = 4 };

struct Element {
  uint32_t type;
  Bytes data;
};

[[noreturn]] void refuse() {
  configs::fail("is damaged, or is not a MAT-file of level 5");
}

template <typename T>
T numberAt(Bytes bytes, size_t index) {
  T number;
  if (bytes.size() < (index + 1) * sizeof(number)) refuse();
  memcpy(&number, bytes.begin() + index * sizeof(number), sizeof(number));
  return number;
}

// Goes through data elements, one after another.
class Elements {
public:
  explicit Elements(Bytes bytes): rest(bytes) {}

  bool atEnd() const { return rest.size() == 0; }

  Element next() {
    auto first = numberAt<uint32_t>(rest, 0);
    uint32_t smallSize = first >> 16;
    // A small element has type, size and data in 8 bytes.
    if (smallSize > 0) {
      if (smallSize > 4) refuse();
      return {first & 0xffff, take(8).slice(4, 4 + smallSize)};
    }
    auto size = numberAt<uint32_t>(rest, 1);
    if (size > rest.size() - 8) refuse();
    auto data = rest.slice(8, 8 + size);
    // Only compressed elements are not padded. The last padding of a file may be missing.
    size_t padded = first == COMPRESSED ? size : (size_t(size) + 7) / 8 * 8;
    take(kj::min(8 + padded, rest.size()));
    return {first, data};
  }
  Bytes nextOf(uint32_t type) {
    auto element = next();
    if (element.type != type) refuse();
    return element.data;
  }

private:
  Bytes take(size_t size) {
    if (size > rest.size()) refuse();
    auto taken = rest.slice(0, size);
    rest = rest.slice(size, rest.size());
    return taken;
  }

  Bytes rest;
};

kj::Array<kj::byte> unpacked(Bytes packed) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) refuse();
  KJ_DEFER(inflateEnd(&stream));
  stream.next_in = const_cast<kj::byte*>(packed.begin());
  stream.avail_in = packed.size();
  kj::Vector<kj::byte> bytes;
  kj::byte buffer[1 << 14];
  for (;;) {
    stream.next_out = buffer;
    stream.avail_out = sizeof(buffer);
    int result = inflate(&stream, Z_NO_FLUSH);
    bytes.addAll(buffer, buffer + sizeof(buffer) - stream.avail_out);
    if (result == Z_STREAM_END) return bytes.releaseAsArray();
    bool hasMore = result == Z_OK && (stream.avail_in > 0 || stream.avail_out == 0);
    if (!hasMore || bytes.size() > UNPACKED_BYTES_MAX) refuse();
  }
}

// Returns the name in `bytes`, which may end in zeros.
kj::String nameIn(Bytes bytes) {
  size_t size = strnlen(bytes.asChars().begin(), bytes.size());
  return kj::heapString(bytes.slice(0, size).asChars());
}

void putUtf8(kj::Vector<char>& text, uint32_t character) {
  if (character < 0x80) {
    text.add(character);
  } else if (character < 0x800) {
    text.add(0xc0 | character >> 6);
    text.add(0x80 | (character & 0x3f));
  } else {
    text.add(0xe0 | character >> 12);
    text.add(0x80 | (character >> 6 & 0x3f));
    text.add(0x80 | (character & 0x3f));
  }
}

kj::String textIn(const Element& element) {
  if (element.type == UTF8) return kj::heapString(element.data.asChars());
  kj::Vector<char> text;
  if (element.type == UINT16) {
    for (size_t i = 0; i < element.data.size() / 2; ++i) {
      putUtf8(text, numberAt<uint16_t>(element.data, i));
    }
  } else {
    for (auto byte: element.data) putUtf8(text, byte);
  }
  return kj::heapString(text);
}

// Returns the first number. Null if there is none.
kj::Maybe<double> numberIn(const Element& element) {
  if (element.data.size() == 0) return nullptr;
  switch (element.type) {
    case INT8:
      return numberAt<int8_t>(element.data, 0);
    case UINT8:
      return numberAt<uint8_t>(element.data, 0);
    case INT16:
      return numberAt<int16_t>(element.data, 0);
    case UINT16:
      return numberAt<uint16_t>(element.data, 0);
    case INT32:
      return numberAt<int32_t>(element.data, 0);
    case UINT32:
      return numberAt<uint32_t>(element.data, 0);
    case SINGLE:
      return numberAt<float>(element.data, 0);
    case DOUBLE:
      return numberAt<double>(element.data, 0);
    default:
      return nullptr;
  }
}

// The head of an array, which precedes its values.
struct Array {
  explicit Array(Bytes matrix): values(matrix) {
    auto flags = values.nextOf(UINT32);
    type = numberAt<uint32_t>(flags, 0) & 0xff;
    auto dimensions = values.nextOf(INT32);
    for (size_t i = 0; i < dimensions.size() / sizeof(int32_t); ++i) {
      auto size = numberAt<int32_t>(dimensions, i);
      if (size < 0 || (size > 0 && count > matrix.size() / size)) refuse();
      count *= size;
    }
    name = nameIn(values.nextOf(INT8));
  }

  uint32_t type;
  size_t count = 1;  // of elements; no more than the array has bytes
  kj::String name;
  Elements values;
};

// Adds the value of the field `name` to `row`.
void addField(MatRow& row, kj::StringPtr name, Bytes matrix) {
  // An empty field may have no array at all.
  if (matrix.size() == 0) return;
  Array array(matrix);
  if (array.type == STRUCT_CLASS || array.values.atEnd()) return;
  auto element = array.values.next();
  if (array.type == CHAR_CLASS) {
    row.texts.upsert(kj::str(name), textIn(element), [](kj::String&, kj::String&&) {});
  } else KJ_IF_MAYBE(number, numberIn(element)) {
    row.numbers.upsert(kj::str(name), *number, [](double&, double) {});
  }
}

kj::Array<MatRow> rowsOf(Array array) {
  auto nameBytes = numberAt<int32_t>(array.values.nextOf(INT32), 0);
  auto names = array.values.nextOf(INT8);
  if (nameBytes <= 0 || names.size() % nameBytes != 0) refuse();
  kj::Vector<kj::String> fields;
  for (size_t at = 0; at < names.size(); at += nameBytes) {
    fields.add(nameIn(names.slice(at, at + nameBytes)));
  }
  // Each field of a row takes bytes of the file, which limits the rows. Without fields, nothing
  // would limit them.
  if (fields.empty()) refuse();
  kj::Vector<MatRow> rows;
  for (size_t i = 0; i < array.count; ++i) {
    auto& row = rows.add();
    for (auto& field: fields) addField(row, field, array.values.nextOf(MATRIX));
  }
  return rows.releaseAsArray();
}

// Returns the rows of the struct array `name` in `elements`, or null if there is none.
kj::Maybe<kj::Array<MatRow>> findTable(Bytes bytes, kj::StringPtr name, bool isPacked) {
  Elements elements(bytes);
  while (!elements.atEnd()) {
    auto element = elements.next();
    if (element.type == COMPRESSED && !isPacked) {
      KJ_IF_MAYBE(rows, findTable(unpacked(element.data), name, true)) return kj::mv(*rows);
    } else if (element.type == MATRIX) {
      Array array(element.data);
      if (array.type == STRUCT_CLASS && array.name == name) return rowsOf(kj::mv(array));
    }
  }
  return nullptr;
}

}  // namespace

kj::Array<MatRow> matTable(Bytes file, kj::StringPtr name) {
  // "IM" is the order of bytes of every machine that this program runs on.
  if (file.size() < HEADER_BYTES || memcmp(file.begin() + HEADER_BYTES - 2, "IM", 2) != 0) refuse();
  KJ_IF_MAYBE(rows, findTable(file.slice(HEADER_BYTES, file.size()), name, false)) {
    return kj::mv(*rows);
  }
  configs::fail("has no table ", name);
}

}  // namespace io

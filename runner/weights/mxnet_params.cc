#include "runner/weights/mxnet_params.h"

#include <kj/map.h>
#include <kj/vector.h>

#include "configs/language/failure.h"

namespace runner {

namespace {

using kj::uint;

// All numbers are little-endian.
constexpr uint64_t LIST_MAGIC = 0x112;
constexpr uint32_t V1_MAGIC = 0xf993fac8;  // shapes have 64 bits per side
constexpr uint32_t V2_MAGIC = 0xf993fac9;  // says whether the array is sparse
constexpr uint32_t V3_MAGIC = 0xf993faca;  // an array without sides is a number

constexpr uint64_t ELEMENTS_MAX = 1ull << 53;

// A row of MXNet's table of types. Its number is the index.
struct TypeRow {
  kj::StringPtr name;  // the name in NumPy
  uint64_t bytes;
  kj::StringPtr known;  // the name in a FoundTensor; empty: weights never have this type
};

constexpr TypeRow TYPES[] = {
    {"float32"_kj, 4, "F32"_kj},
    {"float64"_kj, 8, "F64"_kj},
    {"float16"_kj, 2, "F16"_kj},
    {"uint8"_kj, 1, ""_kj},
    {"int32"_kj, 4, ""_kj},
    {"int8"_kj, 1, ""_kj},
    {"int64"_kj, 8, ""_kj},
    {"bool"_kj, 1, ""_kj},
    {"int16"_kj, 2, ""_kj},
    {"uint16"_kj, 2, ""_kj},
    {"uint32"_kj, 4, ""_kj},
    {"uint64"_kj, 8, ""_kj},
    {"bfloat16"_kj, 2, "BF16"_kj},
};

// Takes bytes from the front of a file. Throws if the file has no more of them.
class Cursor {
public:
  explicit Cursor(kj::ArrayPtr<const kj::byte> rest): rest(rest) {}

  kj::ArrayPtr<const kj::byte> take(uint64_t bytes) {
    if (bytes > rest.size()) configs::fail("it is cut short");
    auto taken = rest.slice(0, bytes);
    rest = rest.slice(bytes, rest.size());
    return taken;
  }
  uint64_t number(uint bytes) {
    uint64_t result = 0;
    uint shift = 0;
    for (auto byte: take(bytes)) {
      result |= uint64_t(byte) << shift;
      shift += 8;
    }
    return result;
  }
  bool isAtEnd() const { return rest.size() == 0; }

private:
  kj::ArrayPtr<const kj::byte> rest;
};

// An array without its name. The names follow all arrays.
struct Array {
  const TypeRow* type;
  kj::String shape;
  kj::ArrayPtr<const kj::byte> values;
};

// Reads the shape of an array, whose sides have `sideBytes` each. Returns how many elements the
// array has. The number of an array with unknown sides is 0: MXNet writes nothing behind its shape.
uint64_t readShape(Cursor& cursor, uint32_t sides, uint sideBytes, kj::String& text) {
  uint64_t elements = 1;
  kj::Vector<kj::String> texts;
  Cursor shape(cursor.take(uint64_t(sides) * sideBytes));
  while (!shape.isAtEnd()) {
    auto side = shape.number(sideBytes);
    if (side == 0 || side > ELEMENTS_MAX) return 0;
    elements = elements > ELEMENTS_MAX / side ? ELEMENTS_MAX : elements * side;
    texts.add(kj::str(side));
  }
  text = kj::strArray(texts, ",");
  return elements;
}

// `which` is the name of the array in messages.
Array readArray(Cursor& cursor, kj::StringPtr which) {
  constexpr uint32_t UNKNOWN = 0xffffffff;
  uint32_t magic = cursor.number(4);
  bool isNew = magic == V2_MAGIC || magic == V3_MAGIC;
  if (isNew) {
    uint32_t storage = cursor.number(4);
    if (storage == 1 || storage == 2) {
      configs::fail("its ", which, " is sparse, and only dense arrays are known. Convert it with ",
          "array.tostype('default') in MXNet, and save the arrays again");
    }
    if (storage != 0) configs::fail("its ", which, " has no values");
  }
  bool isOldest = !isNew && magic != V1_MAGIC;  // begins with the number of its sides
  uint32_t sides = isOldest ? magic : cursor.number(4);
  bool hasSides = sides > 0 || magic == V3_MAGIC;
  Array array;
  uint64_t elements =
      hasSides && sides != UNKNOWN ? readShape(cursor, sides, isOldest ? 4 : 8, array.shape) : 0;
  if (elements == 0) configs::fail("its ", which, " has no values");

  cursor.take(8);  // the device of the array
  uint32_t type = cursor.number(4);
  if (type >= kj::size(TYPES)) configs::fail("its ", which, " has an unknown type, ", type);
  array.type = &TYPES[type];
  array.values = cursor.take(elements * array.type->bytes);
  return array;
}

// Executors know their arrays by these prefixes and names.
kj::String withoutPrefix(kj::ArrayPtr<const char> name) {
  auto text = kj::heapString(name);
  for (auto prefix: {"arg:"_kj, "aux:"_kj}) {
    if (text.startsWith(prefix)) return kj::str(text.slice(prefix.size()));
  }
  return text;
}

FoundTensor named(Array&& array, kj::String name) {
  if (array.type->known.size() == 0) {
    configs::fail("its array `", name, "` has the type ", array.type->name, ", but weights are ",
        "real numbers. Convert it with array.astype('float32') in MXNet, and save the arrays ",
        "again");
  }
  return {kj::mv(name), kj::str(array.type->known), kj::mv(array.shape), array.values};
}

}  // namespace

bool isMxnetParams(kj::ArrayPtr<const kj::byte> bytes) {
  // In a file of safetensors, the second number is a part of the header's text.
  constexpr uint64_t RESERVED = 0;
  Cursor cursor(bytes);
  return bytes.size() >= 16 && cursor.number(8) == LIST_MAGIC && cursor.number(8) == RESERVED;
}

kj::Array<FoundTensor> mxnetArraysIn(kj::ArrayPtr<const kj::byte> bytes) {
  if (!isMxnetParams(bytes)) configs::fail("it does not begin as MXNet's lists of arrays do");
  Cursor cursor(bytes);
  cursor.take(16);  // the magic number, and one that is reserved

  kj::Vector<Array> arrays;
  uint64_t count = cursor.number(8);
  for (uint64_t i = 1; i <= count; i++) {
    arrays.add(readArray(cursor, kj::str("array number ", i, " of ", count)));
  }
  uint64_t names = cursor.number(8);
  if (names == 0 && count > 0) {
    configs::fail("its arrays have no names. Save them with mx.nd.save(path, {'name': array, …})");
  }
  if (names != count) configs::fail("it has ", count, " arrays, but ", names, " names");

  kj::Vector<FoundTensor> found;
  kj::HashSet<kj::String> taken;
  for (auto& array: arrays) {
    auto name = withoutPrefix(cursor.take(cursor.number(8)).asChars());
    if (taken.contains(name)) configs::fail("it has two arrays with the name `", name, "`");
    taken.insert(kj::str(name));
    found.add(named(kj::mv(array), kj::mv(name)));
  }
  if (!cursor.isAtEnd()) configs::fail("it has more bytes after the last name");
  return found.releaseAsArray();
}

}  // namespace runner

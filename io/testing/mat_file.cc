#include "io/testing/mat_file.h"

#include <kj/debug.h>
#include <kj/vector.h>
#include <zlib.h>

#include <cstdint>
#include <cstring>

namespace io {

namespace {

using Bytes = kj::Vector<kj::byte>;

constexpr size_t FIELD_BYTES = 32;
constexpr kj::StringPtr FIELDS[] = {"ILSVRC2012_ID"_kj, "WNID"_kj, "words"_kj, "children"_kj};

template <typename T>
void put(Bytes& to, T number) {
  kj::byte bytes[sizeof(number)];
  memcpy(bytes, &number, sizeof(number));
  to.addAll(bytes, bytes + sizeof(number));
}

void putElement(Bytes& to, uint32_t type, kj::ArrayPtr<const kj::byte> data) {
  bool isSmall = data.size() > 0 && data.size() <= 4;
  if (isSmall) {
    put(to, type | uint32_t(data.size()) << 16);
  } else {
    put(to, type);
    put(to, uint32_t(data.size()));
  }
  to.addAll(data);
  while (to.size() % 8 != 0) to.add(0);
}

// Begins an array of this class and shape.
Bytes arrayOf(uint32_t type, int32_t rows, int32_t columns, kj::StringPtr name) {
  Bytes array;
  uint32_t flags[] = {type, 0};
  int32_t shape[] = {rows, columns};
  putElement(array, 6, kj::arrayPtr(flags, 2).asBytes());
  putElement(array, 5, kj::arrayPtr(shape, 2).asBytes());
  putElement(array, 1, name.asBytes());
  return array;
}

void putText(Bytes& to, kj::StringPtr text) {
  auto array = arrayOf(4, 1, text.size(), "");
  // As MATLAB stores texts: two bytes per character.
  kj::Vector<uint16_t> characters;
  for (auto byte: text.asBytes()) characters.add(byte);
  putElement(array, 4, characters.asPtr().asBytes());
  putElement(to, 14, array);
}

void putNumber(Bytes& to, double number) {
  auto array = arrayOf(6, 1, 1, "");
  putElement(array, 9, kj::arrayPtr(&number, 1).asBytes());
  putElement(to, 14, array);
}

}  // namespace

kj::Array<kj::byte> matFileOf(kj::ArrayPtr<const Synset> synsets, bool isPacked) {
  auto table = arrayOf(2, synsets.size(), 1, "synsets");
  auto nameBytes = int32_t(FIELD_BYTES);
  putElement(table, 5, kj::arrayPtr(&nameBytes, 1).asBytes());
  Bytes names;
  for (auto field: FIELDS) {
    names.addAll(field.asBytes());
    while (names.size() % FIELD_BYTES != 0) names.add(0);
  }
  putElement(table, 1, names);
  for (auto& synset: synsets) {
    putNumber(table, synset.id);
    putText(table, synset.folder);
    putText(table, synset.words);
    putElement(table, 14, arrayOf(6, 0, 0, ""));
  }
  Bytes element;
  // Another variable precedes the table.
  putNumber(element, 7);
  putElement(element, 14, table);
  Bytes file;
  constexpr size_t HEADER_BYTES = 128;
  file.resize(HEADER_BYTES);
  memset(file.begin(), ' ', HEADER_BYTES);
  memcpy(file.begin() + HEADER_BYTES - 2, "IM", 2);
  if (!isPacked) {
    file.addAll(element);
    return file.releaseAsArray();
  }
  auto packed = kj::heapArray<kj::byte>(compressBound(element.size()));
  uLongf size = packed.size();
  KJ_REQUIRE(compress(packed.begin(), &size, element.begin(), element.size()) == Z_OK);
  put(file, uint32_t(15));
  put(file, uint32_t(size));
  file.addAll(packed.slice(0, size));
  return file.releaseAsArray();
}

}  // namespace io

#include "io/images/orientation.h"

#include <kj/debug.h>

#include <cstring>

#include "io/images/png.h"

namespace io {

namespace {

using Bytes = kj::ArrayPtr<const kj::byte>;

// Reads numbers of a TIFF file. Numbers outside of the file are 0.
class Tiff {
public:
  explicit Tiff(Bytes bytes): bytes(bytes), isLittle(bytes.size() > 0 && bytes[0] == 'I') {}

  uint32_t number(size_t at, uint size) const {
    uint32_t value = 0;
    for (uint i = 0; i < size; ++i) {
      size_t place = at + (isLittle ? size - 1 - i : i);
      value = value << 8 | (place < bytes.size() ? bytes[place] : 0);
    }
    return value;
  }

private:
  Bytes bytes;
  bool isLittle;
};

// Finds the orientation in the first directory of a TIFF file (TIFF 6.0, section 2).
uint orientationIn(Bytes tiff) {
  constexpr uint32_t TAG = 274;
  constexpr size_t COUNT_BYTES = 2, ENTRY_BYTES = 12, VALUE_AT = 8;
  Tiff file(tiff);
  if (file.number(2, 2) != 42) return UPRIGHT;
  size_t directory = file.number(4, 4);
  size_t entries = file.number(directory, COUNT_BYTES);
  for (size_t i = 0; i < entries; ++i) {
    size_t at = directory + COUNT_BYTES + i * ENTRY_BYTES;
    if (at >= tiff.size()) break;
    if (file.number(at, 2) != TAG) continue;
    uint value = file.number(at + VALUE_AT, 2);
    return value >= 1 && value <= 8 ? value : UPRIGHT;
  }
  return UPRIGHT;
}

// Of a PNG file (PNG 1.5 extensions, eXIf). Each chunk has a length, a name, its content and a CRC.
uint orientationOfPng(Bytes file) {
  constexpr size_t SIGNATURE_BYTES = 8, HEAD_BYTES = 8, CRC_BYTES = 4;
  constexpr char NAME[] = {'e', 'X', 'I', 'f'};
  for (size_t at = SIGNATURE_BYTES; at + HEAD_BYTES <= file.size();) {
    size_t size = 0;
    for (auto byte: file.slice(at, at + 4)) size = size << 8 | byte;
    size_t content = at + HEAD_BYTES, end = kj::min(file.size(), content + size);
    if (memcmp(file.begin() + at + 4, NAME, sizeof(NAME)) == 0) {
      return orientationIn(file.slice(content, end));
    }
    at = content + size + CRC_BYTES;
  }
  return UPRIGHT;
}

}  // namespace

uint orientationOf(Bytes file) {
  if (isPng(file)) return orientationOfPng(file);
  constexpr kj::byte MARKER = 0xff, APP1 = 0xe1, SCAN = 0xda;
  constexpr char EXIF[] = {'E', 'x', 'i', 'f', 0, 0};
  // Segments follow the two bytes that begin the file. Each has a marker and its length.
  for (size_t at = 2; at + 4 <= file.size();) {
    if (file[at] != MARKER || file[at + 1] == SCAN) break;
    size_t size = file[at + 2] << 8 | file[at + 3];
    if (file[at + 1] == MARKER) {
      ++at;
      continue;
    }
    auto end = kj::min(file.size(), at + 2 + size);
    size_t content = at + 4;
    bool isExif = file[at + 1] == APP1 && content + sizeof(EXIF) <= end &&
                  memcmp(file.begin() + content, EXIF, sizeof(EXIF)) == 0;
    if (isExif) return orientationIn(file.slice(content + sizeof(EXIF), end));
    at += 2 + size;
  }
  return UPRIGHT;
}

kj::Array<kj::byte> upright(Bytes pixels, ImageShape& shape, uint orientation) {
  KJ_REQUIRE(pixels.size() == shape.size() && orientation >= 1 && orientation <= 8, orientation);
  // The eight orientations: mirrored left and right, upside down, and rows as columns.
  bool mirrors = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  bool flips = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  bool swaps = orientation >= 5;
  ImageShape to = shape;
  if (swaps) to = {shape.channels, shape.width, shape.height};
  auto result = kj::heapArray<kj::byte>(shape.size());
  auto out = result.begin();
  for (uint y = 0; y < to.height; ++y) {
    for (uint x = 0; x < to.width; ++x, out += shape.channels) {
      uint column = mirrors ? to.width - 1 - x : x;
      uint row = flips ? to.height - 1 - y : y;
      size_t from = swaps ? size_t(column) * shape.width + row : size_t(row) * shape.width + column;
      memcpy(out, pixels.begin() + from * shape.channels, shape.channels);
    }
  }
  shape = to;
  return result;
}

}  // namespace io

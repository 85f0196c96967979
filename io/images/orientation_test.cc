#include "io/images/orientation.h"

#include <doctest/doctest.h>
#include <kj/vector.h>

#include <cstring>

#include "io/images/jpeg.h"

namespace io {

namespace {

using Bytes = kj::ArrayPtr<const kj::byte>;

// The Exif data of one entry, which is `tag` with `value`.
kj::Array<kj::byte> exif(bool isLittle, kj::byte tag, kj::byte value) {
  if (isLittle) {
    return kj::heapArray<kj::byte>({'E', 'x', 'i', 'f', 0, 0, 'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0,
        tag, 1, 3, 0, 1, 0, 0, 0, value, 0, 0, 0, 0, 0, 0, 0});
  }
  return kj::heapArray<kj::byte>({'E', 'x', 'i', 'f', 0, 0, 'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1,
      tag, 0, 3, 0, 0, 0, 1, 0, value, 0, 0, 0, 0, 0, 0});
}

// A JPEG file with these data after its first segment.
kj::Array<kj::byte> jpegWith(Bytes data) {
  kj::byte pixels[3] = {1, 2, 3};
  auto file = encodeJpeg({{3, 1, 1}, Layout::PLANES, pixels});
  size_t first = 4 + file[5] - 2;
  auto result = kj::heapArray<kj::byte>(file.size() + data.size() + 4);
  auto out = result.begin();
  auto put = [&](Bytes bytes) {
    memcpy(out, bytes.begin(), bytes.size());
    out += bytes.size();
  };
  kj::byte head[] = {0xff, 0xe1, 0, kj::byte(data.size() + 2)};
  put(file.slice(0, 2 + first));
  put(head);
  put(data);
  put(file.slice(2 + first, file.size()));
  return result;
}

kj::String turned(uint orientation) {
  // 1 2 3
  // 4 5 6
  kj::byte pixels[] = {1, 2, 3, 4, 5, 6};
  ImageShape shape = {1, 2, 3};
  auto result = upright(pixels, shape, orientation);
  return kj::str(shape.height, "×", shape.width, ": ", kj::strArray(result, " "));
}

}  // namespace

TEST_CASE("orientationOf: reads the orientation from Exif data in both byte orders") {
  for (kj::byte value = 1; value <= 8; ++value) {
    CHECK(orientationOf(jpegWith(exif(true, 0x12, value))) == value);
    CHECK(orientationOf(jpegWith(exif(false, 0x12, value))) == value);
  }
}

TEST_CASE("orientationOf: reads a PNG file's chunk eXIf, wherever the file is cut short") {
  constexpr size_t EXIF_MARK_BYTES = 6;
  auto all = exif(false, 0x12, 6);
  auto tiff = all.slice(EXIF_MARK_BYTES, all.size());
  kj::Vector<kj::byte> file;
  for (int each: {0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a}) file.add(each);
  auto add = [&](kj::StringPtr name, Bytes content) {
    for (int each: {0, 0, 0, int(content.size())}) file.add(each);
    file.addAll(name.asBytes());
    file.addAll(content);
    for (int i = 0; i < 4; ++i) file.add(0);
  };
  add("IDAT", tiff);
  CHECK(orientationOf(file) == UPRIGHT);
  add("eXIf", tiff);
  CHECK(orientationOf(file) == 6);
  for (size_t size = 0; size < file.size(); ++size) {
    auto part = kj::heapArray<kj::byte>(file.slice(0, size));
    auto found = orientationOf(part);
    CHECK((found == 6 || found == UPRIGHT));
  }
}

TEST_CASE("orientationOf: assumes that an image is upright if Exif has no valid orientation") {
  CHECK(orientationOf(jpegWith(exif(true, 0x13, 6))) == UPRIGHT);
  CHECK(orientationOf(jpegWith(exif(true, 0x12, 0))) == UPRIGHT);
  CHECK(orientationOf(jpegWith(exif(true, 0x12, 9))) == UPRIGHT);
  auto file = jpegWith(exif(false, 0x12, 6));
  CHECK(orientationOf(file) == 6);
  // Wherever it is cut short, nothing outside of it is read.
  for (size_t size = 0; size < file.size(); ++size) {
    auto part = kj::heapArray<kj::byte>(file.slice(0, size));
    auto found = orientationOf(part);
    CHECK((found == 6 || found == UPRIGHT));
  }
}

// As Exif 2.3 defines the eight values, and Pillow's ImageOps.exif_transpose() turns images.
TEST_CASE("upright: turns an image of each orientation") {
  CHECK(turned(1) == "2×3: 1 2 3 4 5 6");
  CHECK(turned(2) == "2×3: 3 2 1 6 5 4");
  CHECK(turned(3) == "2×3: 6 5 4 3 2 1");
  CHECK(turned(4) == "2×3: 4 5 6 1 2 3");
  CHECK(turned(5) == "3×2: 1 4 2 5 3 6");
  CHECK(turned(6) == "3×2: 4 1 5 2 6 3");
  CHECK(turned(7) == "3×2: 6 3 5 2 4 1");
  CHECK(turned(8) == "3×2: 3 6 2 5 1 4");
}

}  // namespace io

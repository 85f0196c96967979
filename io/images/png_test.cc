#include "io/images/png.h"

#include <doctest/doctest.h>
#include <png.h>
#include <zlib.h>

#include "io/testing/png_file.h"
#include "io/testing/scratch.h"
#include "tests/text.h"

namespace io {

namespace {

using Bytes = kj::Array<kj::byte>;

// Two rows of two pixels each.
kj::String decoded(PngKind kind, kj::ArrayPtr<const kj::byte> rows) {
  auto image = decodePng(pngOf(kind, 2, 2, rows));
  CHECK((image.shape == ImageShape{3, 2, 2}));
  return kj::strArray(image.pixels, " ");
}

}  // namespace

TEST_CASE("decodePng: every kind of file gives three channels of 8 bits") {
  kj::StringPtr greys = "0 0 0 255 255 255 255 255 255 0 0 0";
  CHECK(decoded({1, PNG_COLOR_TYPE_GRAY}, Bytes(kj::arr<kj::byte>(0x40, 0x80))) == greys);
  CHECK(decoded({2, PNG_COLOR_TYPE_GRAY}, Bytes(kj::arr<kj::byte>(0x30, 0xc0))) == greys);
  CHECK(decoded({8, PNG_COLOR_TYPE_GRAY}, Bytes(kj::arr<kj::byte>(0, 255, 255, 0))) == greys);
  CHECK(decoded({8, PNG_COLOR_TYPE_GRAY, true}, Bytes(kj::arr<kj::byte>(0, 255, 255, 0))) == greys);
  // With transparency, which does not change the colours.
  CHECK(decoded({8, PNG_COLOR_TYPE_GRAY_ALPHA},
            Bytes(kj::arr<kj::byte>(0, 9, 255, 0, 255, 9, 0, 0))) == greys);
  CHECK(decoded({8, PNG_COLOR_TYPE_RGB_ALPHA},
            Bytes(kj::arr<kj::byte>(1, 2, 3, 0, 4, 5, 6, 9, 7, 8, 9, 0, 10, 11, 12, 255))) ==
        "1 2 3 4 5 6 7 8 9 10 11 12");
  CHECK(decoded({8, PNG_COLOR_TYPE_PALETTE}, Bytes(kj::arr<kj::byte>(0, 1, 2, 0))) ==
        "255 0 0 0 255 0 0 0 255 255 0 0");
  // 16 bits are rounded: 0x017f is 1.49, and 0x0180 is 1.494 of 255.
  CHECK(decoded({16, PNG_COLOR_TYPE_GRAY}, Bytes(kj::arr<kj::byte>(0x01, 0x7f, 0x01, 0x82, 0xff,
                                               0xff, 0, 0))) == "1 1 1 2 2 2 255 255 255 0 0 0");
}

TEST_CASE("decodePng: refuses a file that is not a complete PNG file") {
  auto file = pngOf({8, PNG_COLOR_TYPE_GRAY}, 2, 2, Bytes(kj::arr<kj::byte>(1, 2, 3, 4)));
  auto refusal = [](kj::ArrayPtr<const kj::byte> bytes) {
    return thrownBy([&]() { decodePng(bytes); });
  };
  CHECK(refusal("text"_kj.asBytes()) == "is not a PNG file");
  for (size_t size = 8; size < file.size(); ++size) {
    INFO(size);
    CHECK(tests::contains(refusal(file.slice(0, size)), "cannot be decoded: "));
  }
  // A changed byte of the pixels, in the middle of the file.
  auto damaged = kj::heapArray<kj::byte>(file);
  damaged[file.size() - 20] ^= 0x10;
  CHECK(tests::contains(refusal(damaged), "cannot be decoded: "));
}

TEST_CASE("decodePng: refuses a size that the file is too short for, before it allocates memory") {
  auto file = pngOf({8, PNG_COLOR_TYPE_GRAY}, 2, 2, Bytes(kj::arr<kj::byte>(1, 2, 3, 4)));
  auto resize = [&](kj::byte high) {
    // Width and height follow the signature and the head of their chunk. Then comes their checksum.
    constexpr size_t WIDTH_AT = 16, HEADER_AT = 12, HEADER_BYTES = 17;
    auto changed = kj::heapArray<kj::byte>(file);
    changed[WIDTH_AT + 2] = changed[WIDTH_AT + 6] = high;
    uint32_t crc = crc32_z(0, changed.begin() + HEADER_AT, HEADER_BYTES);
    for (uint i = 0; i < 4; ++i) changed[HEADER_AT + HEADER_BYTES + i] = crc >> (24 - 8 * i);
    return thrownBy([&]() { decodePng(changed); });
  };
  CHECK(tests::contains(resize(0x10), "bytes, which are too few for its 4098×4098 pixels"));
  CHECK(resize(0x21) == "has 8450×8450 pixels, but at most 67108864 are allowed");
}

}  // namespace io

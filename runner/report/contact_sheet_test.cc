#include "runner/report/contact_sheet.h"

#include <doctest/doctest.h>

#include "io/images/jpeg.h"
#include "tests/text.h"

namespace runner {

TEST_CASE("contactSheet: shows each image with its caption, as text") {
  auto images = kj::heapArray<SheetImage>(2);
  images[0] = {
      kj::heapArray<kj::byte>({0xff, 0xd8, 0xff}), kj::str("<cat> & \"dog\""), kj::str("record 0")};
  images[1] = {kj::heapArray<kj::byte>({1}), kj::str("b"), kj::str("record 1")};
  auto page = contactSheet("a < b", "2 of 9", images);
  CHECK(tests::contains(page, "<title>a &lt; b</title>"));
  CHECK(tests::contains(page,
      "<figure title=\"record 0\"><img alt=\"record 0\" src=\"data:image/jpeg;base64,/9j/\"/>"
      "<figcaption>&lt;cat&gt; &amp; &quot;dog&quot;</figcaption></figure>"));
  CHECK(tests::countOf(page, "<figure ") == 2);
}

TEST_CASE("thumbnailOf: shrinks a photograph, and keeps a small image") {
  auto jpeg = [](kj::uint height, kj::uint width) {
    io::ImageShape shape{3, height, width};
    auto pixels = kj::heapArray<kj::byte>(shape.size());
    for (auto& value: pixels) value = 100;
    return io::encodeJpeg({shape, io::Layout::PLANES, pixels});
  };
  io::JpegDecoder decoder;
  auto small = jpeg(28, 40);
  CHECK(thumbnailOf(small) == small);
  CHECK(decoder.shapeOf(thumbnailOf(jpeg(600, 900))) == io::ImageShape{3, 300, 450});
  CHECK_THROWS_WITH(
      thumbnailOf("GIF89a"_kj.asBytes()), doctest::Contains("is neither a JPEG nor a PNG file"));
}

}  // namespace runner

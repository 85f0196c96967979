#include "io/images/jpeg.h"

#include <doctest/doctest.h>
#include <kj/exception.h>
#include <kj/string.h>

#include <cstdlib>
#include <cstring>

namespace io {

namespace {

// Returns a smooth picture, which JPEG keeps well.
kj::Array<kj::byte> picture(ImageShape shape) {
  auto planes = kj::heapArray<kj::byte>(shape.size());
  auto next = planes.begin();
  for (uint c = 0; c < shape.channels; ++c) {
    for (uint y = 0; y < shape.height; ++y) {
      for (uint x = 0; x < shape.width; ++x) {
        *next++ = 20 + c * 40 + y * 60 / shape.height + x * 60 / shape.width;
      }
    }
  }
  return planes;
}

uint largestDifference(kj::ArrayPtr<const kj::byte> a, kj::ArrayPtr<const kj::byte> b) {
  REQUIRE(a.size() == b.size());
  uint largest = 0;
  for (auto i: kj::indices(a)) largest = kj::max(largest, uint(std::abs(int(a[i]) - int(b[i]))));
  return largest;
}

kj::String descriptionOf(kj::Maybe<kj::Exception> exception) {
  KJ_IF_MAYBE(e, exception) return kj::heapString(e->getDescription());
  return kj::String();
}

}  // namespace

TEST_CASE(
    "JpegDecoder: a colour picture comes back within a few grey levels, with its channels in "
    "order") {
  ImageShape shape = {3, 33, 47};
  auto planes = picture(shape);
  auto file = encodeJpeg({shape, Layout::PLANES, planes});
  JpegDecoder decoder;
  CHECK(decoder.shapeOf(file) == shape);
  auto decoded = toPlanes({shape, Layout::PIXELS, decoder.decode(file, shape)});
  CHECK(largestDifference(planes, decoded) <= 3);
}

TEST_CASE("JpegDecoder: reads a grey picture as grey, or as three equal channels") {
  ImageShape grey = {1, 28, 28};
  auto planes = picture(grey);
  auto file = encodeJpeg({grey, Layout::PLANES, planes});
  JpegDecoder decoder;
  CHECK(decoder.shapeOf(file) == ImageShape{3, 28, 28});
  CHECK(largestDifference(planes, decoder.decode(file, grey)) <= 3);
  auto colour = decoder.decode(file, {3, 28, 28});
  for (size_t i = 0; i < 28 * 28; ++i) {
    CHECK(colour[3 * i] == colour[3 * i + 1]);
    CHECK(colour[3 * i] == colour[3 * i + 2]);
  }
}

TEST_CASE("JpegDecoder: a file that ends early is an error, and the decoder reads the next file") {
  ImageShape shape = {3, 64, 64};
  auto planes = picture(shape);
  auto file = encodeJpeg({shape, Layout::PLANES, planes});
  JpegDecoder decoder;
  auto cut = file.slice(0, file.size() * 2 / 3);
  CHECK(decoder.shapeOf(cut) == shape);
  auto description =
      descriptionOf(kj::runCatchingExceptions([&]() { decoder.decode(cut, shape); }));
  CHECK(description == "cannot be decoded: Premature end of JPEG file");
  auto decoded = toPlanes({shape, Layout::PIXELS, decoder.decode(file, shape)});
  CHECK(largestDifference(planes, decoded) <= 3);
}

TEST_CASE("JpegDecoder: refuses a file with a bad header, and reads the next file") {
  ImageShape shape = {3, 16, 16};
  auto planes = picture(shape);
  auto good = encodeJpeg({shape, Layout::PLANES, planes});
  auto bad = kj::heapArray<kj::byte>(good);
  // The first table of quantization steps: the marker FF DB, a length of two bytes, its number.
  const kj::byte marker[] = {0xff, 0xdb};
  auto table = static_cast<kj::byte*>(memmem(bad.begin(), bad.size(), marker, 2));
  REQUIRE(table != nullptr);
  table[4] = 0x0f;
  JpegDecoder decoder;
  CHECK(descriptionOf(kj::runCatchingExceptions([&]() { decoder.shapeOf(bad); })) ==
        "has a damaged JPEG header: Bogus DQT index 15");
  CHECK(decoder.shapeOf(good) == shape);
  CHECK(descriptionOf(kj::runCatchingExceptions([&]() { decoder.decode(bad, shape); })) ==
        "has a damaged JPEG header: Bogus DQT index 15");
  auto decoded = toPlanes({shape, Layout::PIXELS, decoder.decode(good, shape)});
  CHECK(largestDifference(planes, decoded) <= 3);
}

TEST_CASE(
    "JpegDecoder: refuses a file that is not a JPEG, or too large, before it allocates memory") {
  JpegDecoder decoder;
  auto text = kj::StringPtr("not a picture").asBytes();
  CHECK(descriptionOf(kj::runCatchingExceptions([&]() { decoder.shapeOf(text); })) ==
        "is not a JPEG file");
  CHECK(kj::runCatchingExceptions([&]() { decoder.shapeOf(nullptr); }) != nullptr);

  ImageShape shape = {1, 8, 8};
  auto planes = picture(shape);
  auto file = encodeJpeg({shape, Layout::PLANES, planes});
  auto beginning = file.slice(0, 20);
  CHECK(descriptionOf(kj::runCatchingExceptions([&]() { decoder.shapeOf(beginning); })) ==
        "ends before its image begins");
  // Height and width follow the marker FF C0, a length of two bytes and a precision of one.
  const kj::byte marker[] = {0xff, 0xc0};
  auto frame = static_cast<kj::byte*>(memmem(file.begin(), file.size(), marker, 2));
  REQUIRE(frame != nullptr);
  memset(frame + 5, 0x7f, 4);
  CHECK(descriptionOf(kj::runCatchingExceptions([&]() { decoder.shapeOf(file); })) ==
        "has 32639×32639 pixels, but at most 67108864 are allowed");
  memset(frame + 5, 0x1f, 4);
  CHECK(descriptionOf(kj::runCatchingExceptions([&]() { decoder.shapeOf(file); })) ==
        kj::str("has ", file.size(), " bytes, which are too few for its 7967×7967 pixels"));
}

TEST_CASE("JpegDecoder: refuses a file whose size is not the one in its record") {
  ImageShape shape = {1, 8, 8};
  auto planes = picture(shape);
  auto file = encodeJpeg({shape, Layout::PLANES, planes});
  JpegDecoder decoder;
  CHECK(kj::runCatchingExceptions([&]() { decoder.decode(file, {1, 8, 9}); }) != nullptr);
}

}  // namespace io

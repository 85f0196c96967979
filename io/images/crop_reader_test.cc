#include "io/images/crop_reader.h"

#include <doctest/doctest.h>
#include <kj/exception.h>
#include <kj/string.h>

#include <algorithm>
#include <cmath>

namespace io {

namespace {

// Returns a picture with fine and coarse structure.
kj::Array<kj::byte> picture(ImageShape shape) {
  auto planes = kj::heapArrayBuilder<kj::byte>(shape.size());
  for (uint c = 0; c < shape.channels; ++c) {
    for (uint y = 0; y < shape.height; ++y) {
      for (uint x = 0; x < shape.width; ++x) {
        double wave = std::sin(0.11 * x + c) + std::cos(0.07 * y * (c + 1));
        planes.add(kj::byte(128 + 45 * wave + (x * 7 + y * 13) % 11));
      }
    }
  }
  return planes.finish();
}

Record recordOf(Encoding encoding, ImageShape shape, kj::ArrayPtr<const kj::byte> bytes) {
  return {0, 0, encoding, shape, bytes};
}

AugmentConfig configOf(uint crop) {
  AugmentConfig config;
  config.crop = crop;
  config.areaMin = 0.08;
  config.areaMax = 1;
  config.aspectMin = 0.75;
  config.aspectMax = 4 / 3.0;
  config.centreCrop = 0.875;
  return config;
}

double largestDifference(kj::ArrayPtr<const float> a, kj::ArrayPtr<const float> b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (auto i: kj::indices(a)) largest = std::max(largest, std::abs(double(a[i]) - b[i]));
  return largest;
}

double meanDifference(kj::ArrayPtr<const float> a, kj::ArrayPtr<const float> b) {
  REQUIRE(a.size() == b.size());
  double sum = 0;
  for (auto i: kj::indices(a)) sum += std::abs(double(a[i]) - b[i]);
  return sum / a.size();
}

}  // namespace

TEST_CASE("CropReader: a crop of a JPEG file is that of its decoded pixels") {
  ImageShape shape = {3, 120, 150}, batch = {3, 16, 16};
  auto planes = picture(shape);
  auto file = encodeJpeg({shape, Layout::PLANES, planes});
  JpegDecoder decoder;
  auto decoded = toPlanes({shape, Layout::PIXELS, decoder.decode(file, shape)});
  auto jpeg = recordOf(Encoding::JPEG, shape, file);
  auto raw = recordOf(Encoding::RAW, shape, decoded);
  Augmenter augmenter(configOf(16), batch, batch, nullptr);
  CropReader crops(augmenter);
  auto ofFile = kj::heapArray<float>(batch.size()), ofPixels = kj::heapArray<float>(batch.size());
  uint shrunk = 0;
  for (uint record = 0; record < 200; ++record) {
    auto drawn = augmenter.draw(1, 0, record, shape);
    crops.apply(jpeg, drawn, ofFile);
    crops.apply(raw, drawn, ofPixels);
    if (drawn.height >= 64 && drawn.width >= 64) {
      // The decoder has shrunk it.
      CHECK(meanDifference(ofFile, ofPixels) < 1.5);
      ++shrunk;
    } else {
      CHECK(largestDifference(ofFile, ofPixels) == 0);
    }
  }
  CHECK(shrunk > 20);
  CHECK(shrunk < 180);
}

TEST_CASE(
    "CropReader: apply() mirrors a crop, and cut() gives its rounded bytes without mirroring") {
  ImageShape shape = {3, 50, 40}, batch = {3, 8, 8};
  auto planes = picture(shape);
  auto record = recordOf(Encoding::RAW, shape, planes);
  Augmenter augmenter(configOf(8), batch, batch, nullptr);
  CropReader crops(augmenter);
  auto values = kj::heapArray<float>(batch.size()), mirrored = kj::heapArray<float>(batch.size());
  auto bytes = kj::heapArray<kj::byte>(batch.size());
  crops.apply(record, {3, 5, false, 30, 20}, values);
  crops.apply(record, {3, 5, true, 30, 20}, mirrored);
  crops.cut(record, {3, 5, true, 30, 20}, bytes);
  for (uint row = 0; row < 3 * 8; ++row) {
    for (uint x = 0; x < 8; ++x) {
      CHECK(mirrored[row * 8 + x] == values[row * 8 + 7 - x]);
      CHECK(std::abs(bytes[row * 8 + x] - values[row * 8 + x]) <= 0.5f);
    }
  }
}

TEST_CASE("CropReader: colours and a hidden square come after every kind of crop") {
  ImageShape shape = {3, 50, 60}, batch = {3, 16, 16};
  auto planes = picture(shape);
  auto file = encodeJpeg({shape, Layout::PLANES, planes});
  auto padded = [] {
    AugmentConfig config;
    config.crop = 16;
    config.pad = 4;
    return config;
  };
  auto inside = [] {
    AugmentConfig config;
    config.crop = 16;
    return config;
  };
  auto resized = [] { return configOf(16); };
  AugmentConfig (*configs[])() = {padded, inside, resized};
  for (auto make: configs) {
    auto config = make();
    config.mirror = Mirror::RANDOM;
    config.mean = kj::heapArray<double>({123, 117, 104});
    config.deviation = kj::heapArray<double>({58, 57, 56});
    config.colours = {.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .lighting = 0.1};
    config.cutout = 5;
    Augmenter augmenter(config, batch, batch, nullptr);
    CropReader crops(augmenter);
    auto found = kj::heapArray<float>(batch.size()), expected = kj::heapArray<float>(batch.size());
    for (auto& record:
        {recordOf(Encoding::RAW, shape, planes), recordOf(Encoding::JPEG, shape, file)}) {
      for (uint number = 0; number < 40; ++number) {
        auto drawn = augmenter.draw(3, 1, number, shape);
        crops.apply(record, drawn, found);
        auto plain = drawn;
        plain.colours = {};
        plain.hidden = {};
        crops.apply(record, plain, expected);
        CHECK(largestDifference(found, expected) > 0);
        changeColours(drawn.colours, batch, augmenter.means, augmenter.factors, expected);
        auto& hidden = drawn.hidden;
        for (auto i: kj::indices(expected)) {
          int y = int(i) / 16 % 16 - hidden.top, x = int(i) % 16 - hidden.left;
          if (y >= 0 && y < 5 && x >= 0 && x < 5) expected[i] = 0;
        }
        CHECK(largestDifference(found, expected) == 0);
      }
    }
  }
}

TEST_CASE("CropReader: a crop of a grey JPEG file is that of its decoded pixels") {
  ImageShape shape = {1, 40, 40}, batch = {1, 16, 16};
  auto planes = picture(shape);
  auto file = encodeJpeg({shape, Layout::PLANES, planes});
  JpegDecoder decoder;
  auto decoded = kj::heapArray<kj::byte>(decoder.decode(file, shape));
  Augmenter augmenter(configOf(16), batch, batch, nullptr);
  CropReader crops(augmenter);
  auto ofFile = kj::heapArray<float>(batch.size()), ofPixels = kj::heapArray<float>(batch.size());
  crops.apply(recordOf(Encoding::JPEG, shape, file), {2, 4, false, 20, 30}, ofFile);
  crops.apply(recordOf(Encoding::RAW, shape, decoded), {2, 4, false, 20, 30}, ofPixels);
  CHECK(largestDifference(ofFile, ofPixels) == 0);
}

TEST_CASE("CropReader: a JPEG file that ends early is refused if the crop needs what is missing") {
  ImageShape shape = {3, 64, 64}, batch = {3, 16, 16};
  auto planes = picture(shape);
  auto file = encodeJpeg({shape, Layout::PLANES, planes});
  auto record = recordOf(Encoding::JPEG, shape, file.slice(0, file.size() / 2));
  Augmenter augmenter(configOf(16), batch, batch, nullptr);
  CropReader crops(augmenter);
  auto out = kj::heapArray<float>(batch.size());
  crops.apply(record, {0, 0, false, 16, 16}, out);
  auto problem = kj::runCatchingExceptions([&]() {
    crops.apply(record, {40, 0, false, 24, 24}, out);
  });
  KJ_IF_MAYBE(e, problem) {
    CHECK(e->getDescription() == "cannot be decoded: Premature end of JPEG file");
  } else {
    FAIL("it was not refused");
  }
}

}  // namespace io

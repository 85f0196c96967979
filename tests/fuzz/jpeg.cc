// A JPEG file: its header, its pixels in colour and grey, a part of it, crops of it, and the image
// that an import keeps of it.
#include "io/images/jpeg.h"

#include <string.h>

#include "io/images/crop_reader.h"
#include "io/images/kept_image.h"
#include "io/testing/scratch.h"
#include "tests/fuzz/fuzz.h"

namespace fuzz {
namespace {

const io::DataConfig& resized() {
  static const io::DataConfig CONFIG = []() {
    auto config = io::testConfig("image_folder");
    config.resizeShortSide = 16;
    return config;
  }();
  return CONFIG;
}

const io::Augmenter& cropping() {
  static const io::AugmentConfig CONFIG = []() {
    io::AugmentConfig config;
    config.crop = 4;
    config.areaMin = 0.01;
    config.areaMax = 1;
    config.aspectMin = 0.2;
    config.aspectMax = 5;
    return config;
  }();
  static const io::Augmenter AUGMENTER(CONFIG, {3, 4, 4}, {3, 4, 4}, nullptr);
  return AUGMENTER;
}

// The pixels of a part must be those of the whole image. The first bytes of its data say which
// part.
void requireSamePart(io::JpegDecoder& decoder, Bytes file, io::ImageShape shape) {
  auto whole = kj::heapArray<kj::byte>(decoder.decode(file, shape));
  uint seed = file[file.size() / 2] * 256 + file[file.size() / 3];
  uint top = seed % shape.height, left = seed / 7 % shape.width;
  io::Region region{
      top, left, 1 + seed / 3 % (shape.height - top), 1 + seed / 5 % (shape.width - left)};
  uint y = top;
  decoder.decodeRegion(file, shape, 1, region, [&](Bytes row) {
    must(row.size() == 4 * size_t(region.width), "a part has its width");
    auto expected = whole.begin() + (size_t(y++) * shape.width + left) * 3;
    for (uint x = 0; x < region.width; ++x) {
      must(memcmp(&row[4 * x], expected + 3 * x, 3) == 0, "a part has the pixels of the image");
    }
  });
  must(y == top + region.height, "a part has its height");
}

}  // namespace

void feed(Bytes input) {
  // One for all inputs: a file that is refused must not disturb those after it.
  static io::ImageTools tools;
  auto& decoder = tools.decoder;
  static io::CropReader crops(cropping());
  static auto pixels = kj::heapArray<float>(cropping().shape.size());
  auto shape = decoder.shapeOf(input);
  io::Record record{0, 0, io::Encoding::JPEG, shape, input};
  for (uint i = 0; i < 3; ++i) {
    refusalOf([&]() { crops.apply(record, cropping().draw(1, 0, i, shape), pixels); });
  }
  if (tools.checker.isSurelyWhole(input)) {
    must(refusalOf([&]() { decoder.decode(input, shape); }) == nullptr,
        "a file that is surely whole can be decoded");
  }
  requireSamePart(decoder, input, shape);
  refusalOf([&]() { decoder.decode(input, {1, shape.height, shape.width}); });
  refusalOf([&]() { io::keepFile(resized(), input, tools); });
}

}  // namespace fuzz

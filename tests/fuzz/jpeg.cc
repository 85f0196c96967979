// A JPEG file: its header, its pixels in colour and grey, and the image that an import keeps of it.
#include "io/images/jpeg.h"

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

}  // namespace

void feed(Bytes input) {
  // One for all inputs: a file that is refused must not disturb those after it.
  static io::JpegDecoder decoder;
  auto shape = decoder.shapeOf(input);
  decoder.decode(input, shape);
  refusalOf([&]() { decoder.decode(input, {1, shape.height, shape.width}); });
  refusalOf([&]() { io::keepJpeg(resized(), input, decoder); });
}

}  // namespace fuzz

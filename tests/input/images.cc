#include "tests/input/images.h"

#include "io/datasets/import.h"
#include "io/images/jpeg.h"

namespace tests {

namespace {

using io::AugmentConfig;
using io::ImageShape;

AugmentConfig ofMnist() {
  AugmentConfig config;
  config.scale = 1.0 / 255;
  return config;
}

AugmentConfig ofCifar(io::Padding padMode) {
  AugmentConfig config;
  config.pad = 2;
  config.padMode = padMode;
  if (padMode == io::Padding::VALUE) config.padValue = 99.5;
  config.crop = 6;
  config.mirror = io::Mirror::RANDOM;
  config.deviation = kj::heapArray<double>({51.5, 49.25, 50});
  return config;
}

AugmentConfig ofCifarWithMeanImage() {
  auto config = ofCifar(io::Padding::REFLECT);
  config.meanImage = true;
  return config;
}

AugmentConfig ofPhotographs() {
  AugmentConfig config;
  config.crop = 6;
  config.mirror = io::Mirror::RANDOM;
  config.mean = kj::heapArray<double>({123.68, 116.779, 103.939});
  return config;
}

AugmentConfig ofPaddedPhotographs() {
  auto config = ofPhotographs();
  config.pad = 3;
  config.padMode = io::Padding::VALUE;
  config.padValue = 17;
  config.mirror = io::Mirror::ALTERNATE;
  return config;
}

constexpr ImagesCase CASES[] = {
    {"as MNIST's", {1, 6, 5}, false, false, ofMnist},
    {"as CIFAR's, reflected", {3, 7, 7}, false, false,
        []() { return ofCifar(io::Padding::REFLECT); }},
    {"as CIFAR's, its edge repeated", {3, 7, 7}, false, false,
        []() { return ofCifar(io::Padding::EDGE); }},
    {"as CIFAR's, grey around it", {3, 7, 7}, false, false,
        []() { return ofCifar(io::Padding::VALUE); }},
    {"as CIFAR's, with a mean image", {3, 7, 7}, false, false, ofCifarWithMeanImage},
    {"JPEG files of one size", {3, 7, 8}, true, false, ofCifarWithMeanImage},
    {"JPEG files of several sizes", {3, 9, 8}, true, true, ofPhotographs},
    {"JPEG files of several sizes, padded", {3, 6, 8}, true, true, ofPaddedPhotographs},
};

void write(kj::StringPtr path, const ImagesCase& c, uint count, uint seed) {
  auto writer = io::RecordWriter::create(path);
  for (uint i = 0; i < count; ++i) {
    auto shape = c.stored;
    if (c.varies) shape.height += i % 4, shape.width += i % 3;
    auto pixels = kj::heapArray<kj::byte>(shape.size());
    for (auto p: kj::indices(pixels)) pixels[p] = (p * 53 + i * 31 + seed + p * p % 7) % 251;
    io::ImageView image{shape, io::Layout::PLANES, pixels};
    if (c.isJpeg) {
      writer->add(i % 5, i, io::Encoding::JPEG, shape, io::encodeJpeg(image));
    } else {
      writer->add(i % 5, i, io::Encoding::RAW, shape, pixels);
    }
  }
  writer->finish();
}

}  // namespace

constinit const kj::ArrayPtr<const ImagesCase> IMAGES_CASES(CASES);

Images::Images(const ImagesCase& c)
    : config(io::testConfig("image_folder", kj::str(scratch.path("")))) {
  write(scratch.path(io::TRAINING_FILE), c, 23, 0);
  write(scratch.path(io::VALIDATION_FILE), c, 11, 100);
  config.batchSize = 4;
  config.readerThreads = 1;
  config.augment = c.augment();
}

kj::Own<io::Dataset> Images::open() const {
  return io::openDataset(config, io::unheard());
}

}  // namespace tests

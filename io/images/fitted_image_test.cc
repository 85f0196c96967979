#include "io/images/fitted_image.h"

#include <doctest/doctest.h>

#include "io/testing/png_file.h"

namespace io {

namespace {

constexpr PngKind RGB = {8, 2};
constexpr ImageShape GREY = {1, 28, 28}, COLOUR = {3, 32, 32};

const DatasetKind& kindOf(kj::StringPtr name) {
  for (auto& kind: DATASETS) {
    if (kind.name == name) return kind;
  }
  FAIL("no data set of this name");
  return DATASETS[0];
}

// Returns pixels H×W×3 that differ everywhere.
kj::Array<kj::byte> pixelsOf(uint height, uint width) {
  auto pixels = kj::heapArray<kj::byte>(size_t(height) * width * 3);
  for (size_t i = 0; i < pixels.size(); i++) pixels[i] = kj::byte(i * 37 % 251);
  return pixels;
}

// Fits one file as `dataset` stores its images.
kj::Array<kj::byte> fitted(kj::StringPtr dataset, ImageShape stored, kj::ArrayPtr<kj::byte> file) {
  DataConfig config;
  config.dataset = &kindOf(dataset);
  config.encoding = Encoding::RAW;
  config.resizeShortSide = 0;
  Augmenter augmenter(config.augment, stored, stored, nullptr);
  auto kept = ImageFitter(config, stored, augmenter).fit(file);
  CHECK(kept.encoding == Encoding::RAW);
  CHECK(kept.shape == stored);
  return kj::heapArray(kept.bytes);
}

}  // namespace

TEST_CASE("ImageFitter: an image of the stored size keeps its pixels") {
  auto pixels = pixelsOf(32, 32);
  auto planes = fitted("cifar10", COLOUR, pngOf(RGB, 32, 32, pixels));
  for (size_t i = 0; i < 32 * 32; i++) {
    CHECK(planes[i] == pixels[3 * i]);
    CHECK(planes[1024 + i] == pixels[3 * i + 1]);
    CHECK(planes[2048 + i] == pixels[3 * i + 2]);
  }
}

TEST_CASE("ImageFitter: a network for grey images gets grey values unchanged") {
  auto pixels = pixelsOf(28, 28);
  for (size_t i = 0; i < pixels.size(); i++) pixels[i] = pixels[i / 3 * 3];
  auto plane = fitted("fashion_mnist", GREY, pngOf(RGB, 28, 28, pixels));
  for (size_t i = 0; i < plane.size(); i++) CHECK(plane[i] == pixels[3 * i]);
}

TEST_CASE("ImageFitter: a large image is shrunk, and its sides are cut off") {
  // Red in the middle square, green at the left and right of it.
  uint height = 64, width = 128;
  auto pixels = kj::heapArray<kj::byte>(size_t(height) * width * 3);
  for (size_t i = 0; i < pixels.size() / 3; i++) {
    bool isInside = i % width >= 32 && i % width < 96;
    pixels[3 * i] = isInside ? 200 : 0;
    pixels[3 * i + 1] = isInside ? 0 : 200;
    pixels[3 * i + 2] = 7;
  }
  auto planes = fitted("cifar10", COLOUR, pngOf(RGB, width, height, pixels));
  for (size_t y = 0; y < 32; y++) {
    for (size_t x = 1; x < 31; x++) {
      CHECK(planes[y * 32 + x] == 200);
      CHECK(planes[1024 + y * 32 + x] == 0);
      CHECK(planes[2048 + y * 32 + x] == 7);
    }
  }
}

}  // namespace io

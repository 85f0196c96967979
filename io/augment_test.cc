#include "io/augment.h"

#include <doctest/doctest.h>

namespace io {

namespace {

constexpr ImageShape STORED = {3, 6, 7};

kj::Array<kj::byte> pixels() {
  auto result = kj::heapArray<kj::byte>(STORED.size());
  for (auto i: kj::indices(result)) result[i] = i * 53 % 251;
  return result;
}

}  // namespace

TEST_CASE("Augmenter: crop, mean image, mirror, deviation and scale follow the formula") {
  AugmentConfig config;
  config.crop = 4;
  config.mirror = true;
  config.meanImage = true;
  config.deviation = kj::heapArray<double>({2, 4, 8});
  config.scale = 0.5;
  auto image = pixels();
  auto mean = kj::heapArray<float>(STORED.size());
  for (auto i: kj::indices(mean)) mean[i] = i * 0.25f;
  ImageShape shape = {3, 4, 4};
  Augmenter augmenter(config, shape, STORED, mean);
  const double factors[] = {0.25, 0.125, 0.0625};
  for (bool mirror: {false, true}) {
    float out[48];
    augmenter.apply({STORED, Layout::PLANES, image}, {2, 3, mirror}, out);
    for (uint c = 0; c < 3; ++c) {
      for (uint y = 0; y < 4; ++y) {
        for (uint x = 0; x < 4; ++x) {
          uint from = (c * 6 + 2 + y) * 7 + 3 + (mirror ? 3 - x : x);
          CHECK(out[(c * 4 + y) * 4 + x] == float((image[from] - mean[from]) * factors[c]));
        }
      }
    }
  }
}

TEST_CASE("Augmenter: planes and pixels of one image come out the same") {
  auto interleaved = pixels();
  ImageView view = {STORED, Layout::PIXELS, interleaved};
  auto planes = toPlanes(view);
  AugmentConfig config;
  config.crop = 5;
  config.mean = kj::heapArray<double>({123.68, 116.779, 103.939});
  Augmenter augmenter(config, {3, 5, 5}, STORED, nullptr);
  for (bool mirror: {false, true}) {
    float a[75], b[75];
    augmenter.apply(view, {1, 2, mirror}, a);
    augmenter.apply({STORED, Layout::PLANES, planes}, {1, 2, mirror}, b);
    CHECK(kj::arrayPtr(a, 75) == kj::arrayPtr(b, 75));
  }
}

TEST_CASE("Augmenter: without any key the pixels come out as they are") {
  auto image = pixels();
  AugmentConfig config;
  Augmenter augmenter(config, STORED, STORED, nullptr);
  auto out = kj::heapArray<float>(STORED.size());
  augmenter.apply({STORED, Layout::PLANES, image}, augmenter.draw(1, 0, 5, STORED), out);
  for (auto i: kj::indices(out)) CHECK(out[i] == image[i]);
}

TEST_CASE(
    "Augmenter: a draw depends on seed, pass and record, covers every place and mirrors half") {
  AugmentConfig config;
  config.crop = 4;
  config.mirror = true;
  Augmenter augmenter(config, {3, 4, 4}, STORED, nullptr);
  CHECK(augmenter.draw(1, 2, 3, STORED) == augmenter.draw(1, 2, 3, STORED));
  uint counts[3][4] = {};
  uint mirrored = 0, otherPass = 0, otherSeed = 0;
  for (uint record = 0; record < 1200; ++record) {
    auto drawn = augmenter.draw(1, 0, record, STORED);
    REQUIRE(drawn.top <= 2);
    REQUIRE(drawn.left <= 3);
    ++counts[drawn.top][drawn.left];
    mirrored += drawn.mirror;
    otherPass += !(drawn == augmenter.draw(1, 1, record, STORED));
    otherSeed += !(drawn == augmenter.draw(2, 0, record, STORED));
  }
  for (auto& row: counts) {
    for (uint count: row) CHECK((count > 60 && count < 140));
  }
  CHECK((mirrored > 540 && mirrored < 660));
  CHECK(otherPass > 1000);
  CHECK(otherSeed > 1000);
}

TEST_CASE("Augmenter: validation takes the centre, not mirrored") {
  AugmentConfig config;
  config.crop = 28;
  config.mirror = true;
  Augmenter augmenter(config, {3, 28, 28}, {3, 32, 32}, nullptr);
  CHECK(augmenter.centre({3, 32, 32}) == Augmentation{2, 2, false});
  CHECK(augmenter.centre({3, 28, 41}) == Augmentation{0, 6, false});
}

TEST_CASE("Augmenter: cropped at the centre, training images are as validation images are") {
  AugmentConfig config;
  config.crop = 28;
  config.cropAt = CropPlace::CENTRE;
  Augmenter augmenter(config, {3, 28, 28}, {3, 32, 32}, nullptr);
  for (uint record = 0; record < 20; ++record) {
    auto drawn = augmenter.draw(1, 0, record, {3, 32, 32});
    CHECK(drawn == augmenter.centre({3, 32, 32}));
    CHECK(drawn == Augmentation{2, 2, false});
  }
}

TEST_CASE(
    "Augmenter: an image smaller than the crop, or of another shape without crop, is refused") {
  AugmentConfig config;
  config.crop = 28;
  Augmenter cropping(config, {3, 28, 28}, {3, 28, 28}, nullptr);
  CHECK_THROWS(cropping.draw(1, 0, 0, {3, 27, 40}));
  CHECK_THROWS(cropping.centre({3, 40, 27}));
  CHECK_THROWS(cropping.centre({1, 40, 40}));
  AugmentConfig whole;
  Augmenter augmenter(whole, {3, 28, 28}, {3, 28, 28}, nullptr);
  CHECK_THROWS(augmenter.centre({3, 28, 29}));
}

TEST_CASE("Augmenter: a list that has neither one number nor one a channel is refused") {
  AugmentConfig config;
  config.mean = kj::heapArray<double>({1, 2});
  CHECK_THROWS(Augmenter(config, STORED, STORED, nullptr));
}

}  // namespace io

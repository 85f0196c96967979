#include "io/images/augment.h"

#include <doctest/doctest.h>

#include <cmath>

namespace io {

namespace {

constexpr ImageShape STORED = {3, 6, 7};

kj::Array<kj::byte> pixels() {
  auto result = kj::heapArray<kj::byte>(STORED.size());
  for (auto i: kj::indices(result)) result[i] = i * 53 % 251;
  return result;
}

// Returns `plane` of height × width with `pad` more at each side, by copying rows, then columns.
// The reference for padding.
template <typename T>
kj::Array<T> padded(
    kj::ArrayPtr<const T> plane, int height, int width, int pad, Padding mode, T value) {
  auto result = kj::heapArray<T>((height + 2 * pad) * (width + 2 * pad));
  auto source = [&](int at, int size) {
    if (mode == Padding::REFLECT) {
      if (at < 0) at = -at;
      return at < size ? at : 2 * (size - 1) - at;
    }
    return at < 0 ? 0 : at < size ? at : size - 1;
  };
  for (int y = -pad; y < height + pad; ++y) {
    for (int x = -pad; x < width + pad; ++x) {
      bool outside = y < 0 || y >= height || x < 0 || x >= width;
      auto& to = result[(y + pad) * (width + 2 * pad) + x + pad];
      to = mode == Padding::VALUE && outside ? value
                                             : plane[source(y, height) * width + source(x, width)];
    }
  }
  return result;
}

}  // namespace

TEST_CASE("Augmenter: crop, mean image, mirror, deviation and scale follow the formula") {
  AugmentConfig config;
  config.crop = 4;
  config.mirror = Mirror::RANDOM;
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

TEST_CASE("Augmenter: a crop over the edge equals a crop of the padded image, for each pad_mode") {
  constexpr int PAD = 4, CROP = 5;
  auto interleaved = pixels();
  ImageView view = {STORED, Layout::PIXELS, interleaved};
  auto planes = toPlanes(view);
  auto mean = kj::heapArray<float>(STORED.size());
  for (auto i: kj::indices(mean)) mean[i] = i * 0.25f;
  AugmentConfig config;
  config.pad = PAD;
  config.padValue = 127;
  config.crop = CROP;
  config.mean = kj::heapArray<double>({100, 120, 140});
  config.scale = 0.5;
  for (auto mode: {Padding::REFLECT, Padding::EDGE, Padding::VALUE}) {
    config.padMode = mode;
    kj::Array<kj::byte> paddedPixels[3];
    kj::Array<float> paddedMean[3];
    for (uint c = 0; c < 3; ++c) {
      paddedPixels[c] = padded<kj::byte>(planes.slice(c * 42, c * 42 + 42), 6, 7, PAD, mode, 127);
      // Where the image is padded with a value, the mean image repeats its edge.
      auto meanMode = mode == Padding::VALUE ? Padding::EDGE : mode;
      paddedMean[c] = padded<float>(mean.slice(c * 42, c * 42 + 42), 6, 7, PAD, meanMode, 0);
    }
    for (bool subtractImage: {false, true}) {
      Augmenter augmenter(config, {3, CROP, CROP}, STORED,
          subtractImage ? mean.asPtr() : kj::ArrayPtr<const float>());
      bool same = true;
      for (int top = -PAD; top <= 6 + PAD - CROP; ++top) {
        for (int left = -PAD; left <= 7 + PAD - CROP; ++left) {
          for (bool mirror: {false, true}) {
            float a[3 * CROP * CROP], b[3 * CROP * CROP];
            augmenter.apply(view, {top, left, mirror}, a);
            augmenter.apply({STORED, Layout::PLANES, planes}, {top, left, mirror}, b);
            for (int i = 0; i < 3 * CROP * CROP; ++i) {
              int c = i / (CROP * CROP), y = i / CROP % CROP, x = i % CROP;
              int column = PAD + left + (mirror ? CROP - 1 - x : x);
              int from = (PAD + top + y) * (7 + 2 * PAD) + column;
              float subtract = subtractImage ? paddedMean[c][from] : float(config.mean[c]);
              float expected = (float(paddedPixels[c][from]) - subtract) * 0.5f;
              same = same && a[i] == expected && b[i] == expected;
            }
          }
        }
      }
      CHECK_MESSAGE(same, int(mode), subtractImage);
    }
  }
}

TEST_CASE("Augmenter: reflected padding may be wider than the image, and runs back and forth") {
  kj::byte pixels[] = {10, 20, 30};
  AugmentConfig config;
  config.pad = 5;
  config.crop = 1;
  Augmenter augmenter(config, {1, 1, 1}, {1, 1, 3}, nullptr);
  kj::byte expected[] = {20, 10, 20, 30, 20, 10, 20, 30};
  for (int left = -5; left < 3; ++left) {
    float out[1];
    // There is one row, and each row beside it is the same.
    augmenter.apply({{1, 1, 3}, Layout::PLANES, pixels}, {-2, left, false}, out);
    CHECK(out[0] == expected[left + 5]);
  }
}

TEST_CASE("Augmenter: planes and pixels of one image give the same result") {
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

TEST_CASE("Augmenter: without any key the pixels stay unchanged") {
  auto image = pixels();
  AugmentConfig config;
  Augmenter augmenter(config, STORED, STORED, nullptr);
  auto out = kj::heapArray<float>(STORED.size());
  augmenter.apply({STORED, Layout::PLANES, image}, augmenter.draw(1, 0, 5, STORED), out);
  for (auto i: kj::indices(out)) CHECK(out[i] == image[i]);
}

TEST_CASE(
    "Augmenter: a draw depends on seed, pass and record, covers every position and mirrors half") {
  AugmentConfig config;
  config.crop = 4;
  config.mirror = Mirror::RANDOM;
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

TEST_CASE(
    "Augmenter: with padding, crops begin at every position, and validation takes the middle") {
  AugmentConfig config;
  config.pad = 2;
  for (uint crop: {0u, 6u}) {
    config.crop = crop;
    Augmenter augmenter(config, {3, 6, 6}, {3, 6, 6}, nullptr);
    uint counts[5][5] = {};
    for (uint record = 0; record < 2500; ++record) {
      auto drawn = augmenter.draw(1, 0, record, {3, 6, 6});
      REQUIRE((drawn.top >= -2 && drawn.top <= 2 && drawn.left >= -2 && drawn.left <= 2));
      ++counts[drawn.top + 2][drawn.left + 2];
    }
    for (auto& row: counts) {
      for (uint count: row) CHECK((count > 60 && count < 140));
    }
    CHECK(augmenter.centre({3, 6, 6}) == Augmentation{0, 0, false});
  }
  config.crop = 9;
  CHECK(Augmenter(config, {3, 9, 9}, STORED, nullptr).centre(STORED) == Augmentation{-2, -1});
}

TEST_CASE("Augmenter: an alternately mirrored image is swapped in every second pass") {
  AugmentConfig config;
  config.mirror = Mirror::ALTERNATE;
  Augmenter augmenter(config, STORED, STORED, nullptr);
  uint mirrored = 0;
  for (uint record = 0; record < 1200; ++record) {
    bool first = augmenter.draw(1, 0, record, STORED).mirror;
    for (uint pass = 1; pass < 5; ++pass) {
      CHECK(augmenter.draw(1, pass, record, STORED).mirror == (first != (pass % 2 == 1)));
    }
    mirrored += first;
  }
  CHECK((mirrored > 540 && mirrored < 660));
}

TEST_CASE("Augmenter: a view of a validation image is moved from the centre, then mirrored") {
  AugmentConfig config;
  config.crop = 4;
  config.mirror = Mirror::RANDOM;
  Augmenter augmenter(config, {3, 4, 4}, STORED, nullptr);
  CHECK(augmenter.view({0, 0, false, 1}, STORED) == augmenter.centre(STORED));
  CHECK(augmenter.view({1, -1, true, 0.5}, STORED) == Augmentation{2, 0, true});
}

TEST_CASE("Augmenter: validation crops at the centre and does not mirror") {
  AugmentConfig config;
  config.crop = 28;
  config.mirror = Mirror::RANDOM;
  Augmenter augmenter(config, {3, 28, 28}, {3, 32, 32}, nullptr);
  CHECK(augmenter.centre({3, 32, 32}) == Augmentation{2, 2, false});
  CHECK(augmenter.centre({3, 28, 41}) == Augmentation{0, 6, false});
}

TEST_CASE("Augmenter: with crops at the centre, training images equal validation images") {
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

TEST_CASE("Augmenter: refuses an image smaller than the crop, or of another shape without a crop") {
  AugmentConfig config;
  config.crop = 28;
  Augmenter cropping(config, {3, 28, 28}, {3, 28, 28}, nullptr);
  CHECK_THROWS(cropping.draw(1, 0, 0, {3, 27, 40}));
  CHECK_THROWS(cropping.centre({3, 40, 27}));
  CHECK_THROWS(cropping.centre({1, 40, 40}));
  config.pad = 1;
  Augmenter padding(config, {3, 28, 28}, {3, 28, 28}, nullptr);
  CHECK(padding.centre({3, 26, 40}).top == -1);
  CHECK_THROWS(padding.centre({3, 25, 40}));
  AugmentConfig whole;
  whole.pad = 1;
  Augmenter augmenter(whole, {3, 28, 28}, {3, 28, 28}, nullptr);
  CHECK_THROWS(augmenter.centre({3, 28, 29}));
  CHECK_THROWS(augmenter.centre({3, 28, 27}));
}

TEST_CASE("Augmenter: refuses a list that has neither one number nor one per channel") {
  AugmentConfig config;
  config.mean = kj::heapArray<double>({1, 2});
  CHECK_THROWS(Augmenter(config, STORED, STORED, nullptr));
}

TEST_CASE("Augmenter: crops that are resized have areas and shapes in their ranges") {
  AugmentConfig config;
  config.crop = 16;
  config.areaMin = 0.2;
  config.areaMax = 0.6;
  config.aspectMin = 0.5;
  config.aspectMax = 2;
  ImageShape shape = {3, 16, 16}, stored = {3, 400, 500};
  Augmenter augmenter(config, shape, shape, nullptr);
  double areas = 0, logarithms = 0, tops = 0, lefts = 0;
  constexpr uint COUNT = 4000;
  for (uint record = 0; record < COUNT; ++record) {
    auto drawn = augmenter.draw(7, 3, record, stored);
    CHECK(drawn == augmenter.draw(7, 3, record, stored));
    double area = double(drawn.height) * drawn.width / (400 * 500);
    double aspect = double(drawn.width) / drawn.height;
    CHECK(area > 0.198);
    CHECK(area < 0.602);
    CHECK(aspect > 0.495);
    CHECK(aspect < 2.02);
    CHECK(drawn.top >= 0);
    CHECK(drawn.left >= 0);
    CHECK(drawn.top + drawn.height <= stored.height);
    CHECK(drawn.left + drawn.width <= stored.width);
    areas += area;
    logarithms += std::log(aspect);
    tops += (drawn.top + drawn.height / 2.0) / stored.height;
    lefts += (drawn.left + drawn.width / 2.0) / stored.width;
  }
  CHECK(areas / COUNT == doctest::Approx(0.4).epsilon(0.02));
  CHECK(std::abs(logarithms / COUNT) < 0.05);
  CHECK(tops / COUNT == doctest::Approx(0.5).epsilon(0.02));
  CHECK(lefts / COUNT == doctest::Approx(0.5).epsilon(0.02));
}

TEST_CASE("Augmenter: if no crop of these shapes fits, takes the largest one in the middle") {
  AugmentConfig config;
  config.crop = 4;
  config.areaMin = 0.9;
  config.areaMax = 1;
  config.aspectMin = 0.75;
  config.aspectMax = 1.25;
  ImageShape shape = {3, 4, 4};
  Augmenter augmenter(config, shape, shape, nullptr);
  CHECK(augmenter.draw(0, 0, 0, {3, 100, 20}) == Augmentation{36, 0, false, 27, 20});
  CHECK(augmenter.draw(0, 0, 0, {3, 20, 100}) == Augmentation{0, 37, false, 20, 25});
  CHECK(augmenter.reaches({3, 1, 1}));
}

TEST_CASE("Augmenter: the hidden square has its centre at every pixel, and its pixels are 0") {
  AugmentConfig config;
  config.crop = 4;
  config.cutout = 3;
  Augmenter augmenter(config, {3, 4, 4}, STORED, nullptr);
  CHECK(augmenter.finishes());
  CHECK(augmenter.centre(STORED).hidden == Square());
  uint counts[4][4] = {};
  for (uint record = 0; record < 1600; ++record) {
    auto drawn = augmenter.draw(1, 2, record, STORED);
    auto& hidden = drawn.hidden;
    REQUIRE((hidden.top >= -1 && hidden.top <= 2 && hidden.left >= -1 && hidden.left <= 2));
    ++counts[hidden.top + 1][hidden.left + 1];
    float image[48];
    for (auto& value: image) value = 1;
    augmenter.finish(drawn, image);
    for (int i = 0; i < 48; ++i) {
      int y = i / 4 % 4 - hidden.top, x = i % 4 - hidden.left;
      bool isHidden = y >= 0 && y < 3 && x >= 0 && x < 3;
      REQUIRE(image[i] == (isHidden ? 0 : 1));
    }
  }
  for (auto& row: counts) {
    for (uint count: row) CHECK((count > 60 && count < 140));
  }
}

TEST_CASE("Augmenter: colours and squares move no crop, and validation has none of them") {
  AugmentConfig config;
  config.crop = 4;
  config.mirror = Mirror::RANDOM;
  Augmenter plain(config, {3, 4, 4}, STORED, nullptr);
  CHECK(!plain.finishes());
  config.colours.brightness = 0.4;
  config.cutout = 2;
  Augmenter augmenter(config, {3, 4, 4}, STORED, nullptr);
  for (uint record = 0; record < 50; ++record) {
    auto drawn = augmenter.draw(1, 0, record, STORED), expected = plain.draw(1, 0, record, STORED);
    CHECK(drawn.colours != Colours());
    expected.colours = drawn.colours;
    expected.hidden = drawn.hidden;
    CHECK(drawn == expected);
  }
  CHECK(augmenter.view({1, -1, true, 1}, STORED) == plain.view({1, -1, true, 1}, STORED));
}

TEST_CASE("Augmenter: validation cuts a square out of the middle and resizes it") {
  AugmentConfig config;
  config.crop = 8;
  config.areaMin = 0.08;
  config.areaMax = 1;
  config.aspectMin = config.aspectMax = 1;
  config.centreCrop = 0.875;
  ImageShape shape = {3, 8, 8};
  Augmenter augmenter(config, shape, shape, nullptr);
  CHECK(augmenter.centre({3, 32, 48}) == Augmentation{2, 10, false, 28, 28});
  CHECK(augmenter.view({-5, 1, true, 1}, {3, 32, 48}) == Augmentation{0, 11, true, 28, 28});
}

}  // namespace io

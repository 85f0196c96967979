#include "io/images/colours.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

namespace io {

namespace {

constexpr ImageShape SHAPE = {3, 9, 13};
constexpr size_t COUNT = 9 * 13;
constexpr float MEANS[] = {123.68f, 116.779f, 103.939f};
constexpr float FACTORS[] = {1 / 58.393f, 1 / 57.12f, 1 / 57.375f};

// Grey levels from 0 to 255.
kj::Array<double> levels() {
  auto result = kj::heapArray<double>(SHAPE.size());
  for (auto i: kj::indices(result)) result[i] = i * 53 % 256;
  return result;
}

double greyOf(kj::ArrayPtr<const double> x, size_t pixel) {
  return 0.299 * x[pixel] + 0.587 * x[COUNT + pixel] + 0.114 * x[2 * COUNT + pixel];
}

// One factor, as MXNet and torchvision apply it: an image is blended with black, with its mean grey
// or with its own greys.
void apply(char what, double factor, kj::ArrayPtr<double> x) {
  double sum = 0;
  for (size_t pixel = 0; pixel < COUNT; ++pixel) sum += greyOf(x, pixel);
  for (size_t pixel = 0; pixel < COUNT; ++pixel) {
    double grey = greyOf(x, pixel);
    double other = what == 'b' ? 0 : what == 'c' ? sum / COUNT : grey;
    for (uint c = 0; c < 3; ++c) {
      auto& value = x[c * COUNT + pixel];
      value = factor * value + (1 - factor) * other;
    }
  }
}

kj::Array<float> normalised(kj::ArrayPtr<const double> x) {
  auto result = kj::heapArray<float>(x.size());
  for (auto i: kj::indices(x)) {
    uint c = i / COUNT;
    result[i] = static_cast<float>((x[i] - MEANS[c]) * FACTORS[c]);
  }
  return result;
}

double largestDifference(kj::ArrayPtr<const float> a, kj::ArrayPtr<const float> b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (auto i: kj::indices(a)) largest = std::max(largest, std::abs(double(a[i]) - b[i]));
  return largest;
}

}  // namespace

TEST_CASE("Colours: gives the result of the three factors one after another, in whatever order") {
  Colours colours{.brightness = 0.7, .contrast = 1.35, .saturation = 0.6};
  kj::StringPtr orders[] = {"bcs", "bsc", "cbs", "csb", "sbc", "scb"};
  for (auto order: orders) {
    auto expected = levels();
    for (char what: order) {
      apply(what, what == 'b' ? 0.7 : what == 'c' ? 1.35 : 0.6, expected);
    }
    auto image = normalised(levels());
    changeColours(colours, SHAPE, MEANS, FACTORS, image);
    // In units of a deviation: a hundred thousandth of a grey level.
    CHECK(largestDifference(image, normalised(expected)) < 1e-6);
  }
}

TEST_CASE("Colours: each factor alone, and the light alone, follow their formulas") {
  auto check = [](Colours colours, auto&& expect) {
    auto expected = levels();
    expect(expected);
    auto image = normalised(levels());
    changeColours(colours, SHAPE, MEANS, FACTORS, image);
    CHECK(largestDifference(image, normalised(expected)) < 1e-6);
  };
  check({.brightness = 1.4}, [](kj::ArrayPtr<double> x) { apply('b', 1.4, x); });
  check({.contrast = 0.6}, [](kj::ArrayPtr<double> x) { apply('c', 0.6, x); });
  check({.saturation = 1.4}, [](kj::ArrayPtr<double> x) { apply('s', 1.4, x); });
  check({.light = {5, -3, 0.25}}, [](kj::ArrayPtr<double> x) {
    for (size_t pixel = 0; pixel < COUNT; ++pixel) {
      x[pixel] += 5;
      x[COUNT + pixel] -= 3;
      x[2 * COUNT + pixel] += 0.25;
    }
  });
}

TEST_CASE("Colours: a grey image that is longer than a block of sums follows the formula") {
  ImageShape shape = {1, 61, 67};
  auto image = kj::heapArray<float>(shape.size());
  double sum = 0;
  for (auto i: kj::indices(image)) sum += image[i] = i * 53 % 256;
  float mean = 0, factor = 1;
  changeColours({.brightness = 0.5, .contrast = 1.25}, shape, {&mean, 1}, {&factor, 1}, image);
  double largest = 0;
  for (auto i: kj::indices(image)) {
    double expected = 0.5 * (1.25 * (i * 53 % 256) - 0.25 * sum / image.size());
    largest = std::max(largest, std::abs(image[i] - expected));
  }
  CHECK(largest < 1e-4);
}

TEST_CASE("Colours: factors are in their ranges, and lighting follows ImageNet's components") {
  ColourRanges ranges{.brightness = 0.4, .contrast = 0.2, .saturation = 1, .lighting = 0.1};
  constexpr uint DRAWS = 20000;
  double factors[3] = {}, least[3] = {9, 9, 9}, most[3] = {}, squares[3] = {}, sums[3] = {};
  double redGreen = 0;
  for (uint record = 0; record < DRAWS; ++record) {
    configs::Random random(5, configs::Purpose::COLOURS, 2, record);
    auto drawn = drawColours(ranges, random);
    double drawnFactors[] = {drawn.brightness, drawn.contrast, drawn.saturation};
    for (uint i = 0; i < 3; ++i) {
      factors[i] += drawnFactors[i] / DRAWS;
      least[i] = std::min(least[i], drawnFactors[i]);
      most[i] = std::max(most[i], drawnFactors[i]);
      sums[i] += drawn.light[i] / DRAWS;
      squares[i] += drawn.light[i] * drawn.light[i] / DRAWS;
    }
    redGreen += drawn.light[0] * drawn.light[1] / DRAWS;
  }
  double spreads[] = {0.4, 0.2, 1};
  for (uint i = 0; i < 3; ++i) {
    CHECK(factors[i] == doctest::Approx(1).epsilon(0.01));
    CHECK(least[i] >= 1 - spreads[i]);
    CHECK(least[i] < 1 - 0.99 * spreads[i]);
    CHECK(most[i] <= 1 + spreads[i]);
    CHECK(most[i] > 1 + 0.99 * spreads[i]);
    CHECK(std::abs(sums[i]) < 0.1);
  }
  // The sums over the components of (0.1 · eigenvalue)² and two entries of its vector.
  auto expected = [](double a, double b, double c) {
    return 5.546 * 5.546 * a + 0.4794 * 0.4794 * b + 0.1148 * 0.1148 * c;
  };
  CHECK(squares[0] == doctest::Approx(expected(0.32206, 0.51725, 0.16072)).epsilon(0.03));
  CHECK(squares[1] == doctest::Approx(expected(0.33733, 0.00002, 0.66260)).epsilon(0.03));
  CHECK(squares[2] == doctest::Approx(expected(0.34059, 0.48275, 0.17665)).epsilon(0.03));
  CHECK(redGreen == doctest::Approx(expected(0.32960, -0.00324, -0.32633)).epsilon(0.03));
}

TEST_CASE(
    "Colours: a draw depends only on its place, and a key does not change the draws of others") {
  auto drawn = [](ColourRanges ranges, uint64_t record) {
    configs::Random random(5, configs::Purpose::COLOURS, 2, record);
    return drawColours(ranges, random);
  };
  ColourRanges all{.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .lighting = 0.1};
  auto first = drawn(all, 7);
  CHECK(first == drawn(all, 7));
  CHECK(first != drawn(all, 8));
  CHECK(drawn({.contrast = 0.4}, 7) == Colours{.contrast = first.contrast});
  CHECK(drawn({.saturation = 0.4}, 7) == Colours{.saturation = first.saturation});
  CHECK(drawn({}, 7) == Colours());
  auto& light = first.light;
  CHECK(drawn({.lighting = 0.1}, 7) == Colours{.light = {light[0], light[1], light[2]}});
}

}  // namespace io

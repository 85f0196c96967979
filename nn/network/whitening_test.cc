#include "nn/network/whitening.h"

#include <doctest/doctest.h>

#include <cmath>

#include "configs/language/random.h"

namespace nn {
namespace {

constexpr Shape SHAPE = {2, 9, 7};
constexpr uint IMAGES = 40, KERNEL = 2, VALUES = 2 * KERNEL * KERNEL;

// Images whose neighbours resemble each other, in channels too, and whose mean is not 0.
kj::Array<float> smoothImages() {
  auto images = kj::heapArray<float>(IMAGES * SHAPE.size());
  configs::Random random(1, configs::Purpose::ORDER);
  float last = 0;
  for (float& pixel: images) pixel = last = 0.9f * last + float(random.normal()) + 0.1f;
  return images;
}

// Returns the outputs of a convolution with `filters` at every place of every image: one row of
// `count` values per place.
kj::Array<double> outputs(
    kj::ArrayPtr<const float> images, kj::ArrayPtr<const float> filters, uint count) {
  uint height = SHAPE.height - KERNEL + 1, width = SHAPE.width - KERNEL + 1;
  auto result = kj::heapArrayBuilder<double>(uint64_t(IMAGES) * height * width * count);
  for (uint n = 0; n < IMAGES; ++n) {
    for (uint place = 0; place < height * width; ++place) {
      for (uint f = 0; f < count; ++f) {
        double sum = 0;
        for (uint p = 0; p < VALUES; ++p) {
          uint c = p / (KERNEL * KERNEL), u = p / KERNEL % KERNEL, v = p % KERNEL;
          uint i = place / width + u, j = place % width + v;
          sum += double(filters[f * VALUES + p]) *
                 images[((n * SHAPE.channels + c) * SHAPE.height + i) * SHAPE.width + j];
        }
        result.add(sum);
      }
    }
  }
  return result.finish();
}

// The largest distance of the mean of y·yᵀ from the identity, over rows y of `count` values.
double distanceFromIdentity(kj::ArrayPtr<const double> rows, uint count) {
  double largest = 0;
  for (uint a = 0; a < count; ++a) {
    for (uint b = 0; b < count; ++b) {
      double sum = 0;
      for (size_t row = 0; row < rows.size(); row += count) sum += rows[row + a] * rows[row + b];
      largest = kj::max(largest, std::abs(sum / (rows.size() / count) - (a == b)));
    }
  }
  return largest;
}

TEST_CASE("Whitening: the first half of the filters makes patches white") {
  auto images = smoothImages();
  auto filters = kj::heapArray<float>(2 * VALUES * VALUES);
  whiten(images, SHAPE, KERNEL, 1e-12, filters);
  CHECK(distanceFromIdentity(outputs(images, filters, VALUES), VALUES) < 1e-5);
  // The patches themselves are far from white.
  auto same = kj::heapArray<float>(VALUES * VALUES);
  for (uint i = 0; i < same.size(); ++i) same[i] = i % (VALUES + 1) == 0;
  CHECK(distanceFromIdentity(outputs(images, same, VALUES), VALUES) > 1);
}

TEST_CASE("Whitening: the second half of the filters are the negatives, and signs are fixed") {
  auto filters = kj::heapArray<float>(2 * VALUES * VALUES);
  whiten(smoothImages(), SHAPE, KERNEL, 5e-4, filters);
  for (uint f = 0; f < VALUES; ++f) {
    float largest = 0;
    for (uint p = 0; p < VALUES; ++p) {
      float weight = filters[f * VALUES + p];
      CHECK(filters[(VALUES + f) * VALUES + p] == -weight);
      if (std::abs(weight) > std::abs(largest)) largest = weight;
    }
    CHECK(largest > 0);
  }
}

TEST_CASE("Whitening: images whose values are not finite are refused in a plain sentence") {
  auto images = smoothImages();
  images[0] = INFINITY;
  auto filters = kj::heapArray<float>(2 * VALUES * VALUES);
  CHECK_THROWS_WITH(whiten(images, SHAPE, KERNEL, 1e-12, filters),
      doctest::Contains("the values of the images are too large or not finite"));
}

TEST_CASE("Whitening: epsilon bounds filters for directions that never occur") {
  // All pixels of an image are equal: one direction has all the moment, 3² · VALUES.
  auto images = kj::heapArray<float>(IMAGES * SHAPE.size());
  for (float& pixel: images) pixel = 3;
  auto filters = kj::heapArray<float>(2 * VALUES * VALUES);
  whiten(images, SHAPE, KERNEL, 0.25, filters);
  double first = 1 / std::sqrt(VALUES * (9 * VALUES + 0.25));
  for (uint p = 0; p < VALUES; ++p) CHECK(filters[p] == doctest::Approx(first));
  for (uint f = 1; f < VALUES; ++f) {
    double squares = 0;
    for (uint p = 0; p < VALUES; ++p) {
      squares += double(filters[f * VALUES + p]) * filters[f * VALUES + p];
    }
    // A unit vector over the root of epsilon.
    CHECK(squares == doctest::Approx(4));
  }
}

TEST_CASE("Whitening: the same images give the same bits") {
  auto first = kj::heapArray<float>(2 * VALUES * VALUES);
  auto second = kj::heapArray<float>(first.size());
  whiten(smoothImages(), SHAPE, KERNEL, 5e-4, first);
  whiten(smoothImages(), SHAPE, KERNEL, 5e-4, second);
  CHECK(first == second);
}

}  // namespace
}  // namespace nn

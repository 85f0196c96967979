#include "io/images/resizer.h"

#include <doctest/doctest.h>
#include <kj/vector.h>

#include <algorithm>
#include <cmath>

namespace io {

namespace {

constexpr uint VALUES = Resizer::VALUES;

kj::Array<kj::byte> imageOf(uint height, uint width) {
  auto bytes = kj::heapArray<kj::byte>(size_t(height) * width * VALUES);
  for (auto i: kj::indices(bytes)) bytes[i] = i * 97 % 251;
  return bytes;
}

// Returns the new image by the definition: the mean of all pixels, weighted by a triangle.
kj::Array<double> expected(kj::ArrayPtr<const kj::byte> image, uint height, uint width, Extent rows,
    Extent columns, uint newHeight, uint newWidth) {
  auto weight = [](Extent extent, uint newSize, uint to, uint from) {
    bool isInside = from + 1 > extent.begin && from < extent.begin + extent.size;
    double scale = extent.size / newSize;
    double centre = extent.begin + (to + 0.5) * scale;
    return isInside ? std::max(0.0, 1 - std::abs(from + 0.5 - centre) / std::max(1.0, scale)) : 0;
  };
  auto result = kj::heapArrayBuilder<double>(size_t(newHeight) * newWidth * VALUES);
  for (uint i = 0; i < newHeight; ++i) {
    for (uint j = 0; j < newWidth; ++j) {
      for (uint v = 0; v < VALUES; ++v) {
        double sum = 0, weights = 0;
        for (uint y = 0; y < height; ++y) {
          for (uint x = 0; x < width; ++x) {
            double w = weight(rows, newHeight, i, y) * weight(columns, newWidth, j, x);
            sum += w * image[(size_t(y) * width + x) * VALUES + v];
            weights += w;
          }
        }
        result.add(sum / weights);
      }
    }
  }
  return result.finish();
}

// Returns the largest difference to expected().
double error(Resizer& resizer, uint height, uint width, Extent rows, Extent columns, uint newHeight,
    uint newWidth) {
  auto image = imageOf(height, width);
  auto right = expected(image, height, width, rows, columns, newHeight, newWidth);
  resizer.begin(height, width, rows, columns, newHeight, newWidth);
  size_t row_bytes = width * VALUES, next = 0;
  double largest = 0;
  for (uint y = 0; y < height; ++y) {
    auto row = image.slice(y * row_bytes, (y + 1) * row_bytes);
    resizer.add(row, [&](uint i, kj::ArrayPtr<const float> planes) {
      CHECK(i * newWidth * VALUES == next);
      REQUIRE(planes.size() == newWidth * VALUES);
      for (uint x = 0; x < newWidth; ++x) {
        for (uint v = 0; v < VALUES; ++v) {
          largest = std::max(largest, std::abs(planes[v * newWidth + x] - right[next++]));
        }
      }
    });
  }
  CHECK(next == right.size());
  return largest;
}

double error(Resizer& resizer, uint height, uint width, uint newHeight, uint newWidth) {
  return error(
      resizer, height, width, {0, double(height)}, {0, double(width)}, newHeight, newWidth);
}

}  // namespace

TEST_CASE("Resizer: each new pixel is the mean around its place, weighted by a triangle") {
  // One object for all images, because an image must not change the result of the next one.
  Resizer resizer;
  CHECK(error(resizer, 40, 50, 7, 9) < 1e-3);
  CHECK(error(resizer, 7, 9, 20, 31) < 1e-3);
  CHECK(error(resizer, 30, 8, 11, 16) < 1e-3);
  CHECK(error(resizer, 13, 17, 13, 17) == 0);
  CHECK(error(resizer, 1, 1, 5, 3) < 1e-3);
  CHECK(error(resizer, 23, 3, 1, 1) < 1e-3);
}

TEST_CASE("Resizer: the region to resize may begin and end within a pixel") {
  Resizer resizer;
  CHECK(error(resizer, 20, 22, {0.5, 19}, {1.25, 20.5}, 8, 7) < 1e-3);
  CHECK(error(resizer, 20, 22, {3.75, 12.5}, {0, 21.5}, 24, 30) < 1e-3);
}

TEST_CASE("Resizer: an image of one colour keeps it") {
  Resizer resizer;
  resizer.begin(9, 11, {0, 9}, {0, 11}, 4, 25);
  auto row = kj::heapArray<kj::byte>(11 * VALUES);
  for (auto& value: row) value = 255;
  uint count = 0;
  for (uint y = 0; y < 9; ++y) {
    resizer.add(row, [&](uint, kj::ArrayPtr<const float> planes) {
      ++count;
      for (auto value: planes) CHECK(value == doctest::Approx(255).epsilon(1e-6));
    });
  }
  CHECK(count == 4);
}

}  // namespace io

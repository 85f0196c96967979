#include "io/image.h"

#include <kj/debug.h>
#include <string.h>

#include <algorithm>

namespace io {

namespace {

struct Strides {
  size_t channel;
  size_t row;
  size_t column;
};

Strides stridesOf(const ImageView& image) {
  auto& s = image.shape;
  KJ_REQUIRE(image.bytes.size() == s.size(), "the number of bytes does not fit the shape");
  if (image.layout == Layout::PLANES) {
    return {size_t(s.height) * s.width, s.width, 1};
  }
  return {1, size_t(s.width) * s.channels, s.channels};
}

// The position of a pixel of the new image between two pixels of the old one, along one side.
struct Between {
  uint first;
  uint second;
  float weight;  // of the second one
};

kj::Array<Between> betweens(uint from, uint to) {
  auto result = kj::heapArrayBuilder<Between>(to);
  for (uint i = 0; i < to; ++i) {
    double center = (i + 0.5) * from / to - 0.5;
    center = std::min(std::max(center, 0.0), from - 1.0);
    uint first = static_cast<uint>(center);
    result.add(Between{first, std::min(first + 1, from - 1), static_cast<float>(center - first)});
  }
  return result.finish();
}

}  // namespace

kj::String sizeOf(ImageShape shape) {
  return kj::str(shape.width, "×", shape.height);
}

kj::Array<kj::byte> toPlanes(ImageView image) {
  auto out = kj::heapArray<kj::byte>(image.bytes.size());
  toPlanes(image, out);
  return out;
}

void toPlanes(ImageView image, kj::ArrayPtr<kj::byte> out) {
  KJ_REQUIRE(out.size() == image.shape.size() && image.bytes.size() == out.size());
  if (image.layout == Layout::PLANES) {
    memcpy(out.begin(), image.bytes.begin(), out.size());
    return;
  }
  auto strides = stridesOf(image);
  auto to = out.begin();
  for (uint c = 0; c < image.shape.channels; ++c) {
    for (uint y = 0; y < image.shape.height; ++y) {
      auto from = image.bytes.begin() + c * strides.channel + y * strides.row;
      for (uint x = 0; x < image.shape.width; ++x) *to++ = from[x * strides.column];
    }
  }
}

ImageShape resizedShape(ImageShape shape, uint shortSide) {
  uint shorter = std::min(shape.height, shape.width);
  KJ_REQUIRE(shorter > 0 && shortSide > 0);
  auto scaled = [&](uint side) -> uint {
    uint64_t size = (uint64_t(side) * shortSide * 2 + shorter) / (uint64_t(shorter) * 2);
    return std::min<uint64_t>(size, uint(kj::maxValue));
  };
  return {shape.channels, scaled(shape.height), scaled(shape.width)};
}

kj::Array<kj::byte> resize(ImageView image, ImageShape to) {
  auto strides = stridesOf(image);
  KJ_REQUIRE(to.channels == image.shape.channels);
  auto rows = betweens(image.shape.height, to.height);
  auto columns = betweens(image.shape.width, to.width);
  auto out = kj::heapArray<kj::byte>(to.size());
  auto next = out.begin();
  for (uint c = 0; c < to.channels; ++c) {
    auto plane = image.bytes.begin() + c * strides.channel;
    for (auto& y: rows) {
      auto above = plane + y.first * strides.row;
      auto below = plane + y.second * strides.row;
      for (auto& x: columns) {
        size_t left = x.first * strides.column;
        size_t right = x.second * strides.column;
        float top = above[left] + (float(above[right]) - above[left]) * x.weight;
        float bottom = below[left] + (float(below[right]) - below[left]) * x.weight;
        *next++ = static_cast<kj::byte>(top + (bottom - top) * y.weight + 0.5f);
      }
    }
  }
  return out;
}

}  // namespace io

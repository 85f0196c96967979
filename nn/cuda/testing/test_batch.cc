#include "nn/cuda/testing/test_batch.h"

#include <kj/debug.h>
#include <string.h>

#include <cmath>
#include <random>

namespace nn::cuda {
namespace {

float readAt(Element element, const void* memory, size_t place) {
  switch (element) {
    case Element::FLOAT32:
      return static_cast<const float*>(memory)[place];
    case Element::BFLOAT16:
      return load(static_cast<const Bfloat16*>(memory)[place]);
    case Element::FLOAT16:
      return load(static_cast<const Float16*>(memory)[place]);
  }
  KJ_UNREACHABLE;
}

void writeAt(Element element, void* memory, size_t place, float value) {
  switch (element) {
    case Element::FLOAT32:
      return store(static_cast<float*>(memory)[place], value);
    case Element::BFLOAT16:
      return store(static_cast<Bfloat16*>(memory)[place], value);
    case Element::FLOAT16:
      return store(static_cast<Float16*>(memory)[place], value);
  }
}

}  // namespace

Batch::Batch(Element element, Form form, uint images, Shape shape)
    : element(element), images(images), shape(shape) {
  uint pack = packOf(element);
  uint padded = (shape.channels + pack - 1) / pack * pack;
  width = form == Form::PART ? shape.channels : padded;
  offset = form == Form::PADDED ? 0 : form == Form::PART ? 3 : pack;
  stride = form == Form::PADDED ? padded : form == Form::PART ? padded + 7 : padded + pack;
  // The memory ends with the last pixel, so that a sanitizer reports reads beyond it.
  size_t pixels = size_t(images) * shape.height * shape.width;
  size_t values = pixels == 0 ? 0 : offset + (pixels - 1) * stride + width;
  memory = kj::heapArray<Line>((values * bytesOf(element) + sizeof(Line) - 1) / sizeof(Line));
  memset(memory.begin(), 0xff, memory.asBytes().size());
}

Batch::Batch(Element element, Form form, const Tensor& values)
    : Batch(element, form, values.images, values.shape) {
  fill(values);
  for (size_t pixel = 0; pixel < view().pixels; ++pixel) {
    for (uint c = shape.channels; c < width; ++c) {
      writeAt(element, memory.begin(), offset + pixel * stride + c, 0);
    }
  }
}

View Batch::view() const {
  auto start = const_cast<kj::byte*>(memory.asBytes().begin());
  return {start + offset * bytesOf(element), images * shape.height * shape.width, shape.channels,
      width, stride};
}

size_t Batch::placeOf(uint image, uint channel, uint row, uint column) const {
  size_t pixel = (size_t(image) * shape.height + row) * shape.width + column;
  return offset + pixel * stride + channel;
}

void Batch::fill(const Tensor& values) {
  KJ_REQUIRE(values.images == images && values.shape == shape);
  for (uint n = 0; n < images; ++n) {
    for (uint c = 0; c < shape.channels; ++c) {
      for (uint h = 0; h < shape.height; ++h) {
        for (uint w = 0; w < shape.width; ++w) {
          writeAt(element, memory.begin(), placeOf(n, c, h, w), float(values.at(n, c, h, w)));
        }
      }
    }
  }
}

Tensor Batch::values() const {
  Tensor result(images, shape);
  for (uint n = 0; n < images; ++n) {
    for (uint h = 0; h < shape.height; ++h) {
      for (uint w = 0; w < shape.width; ++w) {
        for (uint c = 0; c < width; ++c) {
          float value = readAt(element, memory.begin(), placeOf(n, c, h, w));
          if (c < shape.channels) {
            result.at(n, c, h, w) = value;
          } else {
            KJ_REQUIRE(value == 0, "a value behind the channels", n, h, w, c);
          }
        }
      }
    }
  }
  size_t perLine = sizeof(Line) / bytesOf(element);
  for (size_t i = 0; i < memory.size() * perLine; ++i) {
    size_t pixel = (i - offset) / stride;
    bool isInside = i >= offset && (i - offset) % stride < width &&
                    pixel < size_t(images) * shape.height * shape.width;
    if (isInside) continue;
    auto bytes = memory.asBytes().slice(i * bytesOf(element), (i + 1) * bytesOf(element));
    for (auto byte: bytes) KJ_REQUIRE(byte == 0xff, "a value outside of the view", i);
  }
  return result;
}

Tensor drawTensor(uint seed, uint images, Shape shape, double scale, double shift) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Tensor result(images, shape);
  for (double& value: result.values) value = shift + scale * normal(random);
  return result;
}

kj::Array<float> drawFloats(uint seed, uint count) {
  auto values = drawTensor(seed, 1, {count});
  return KJ_MAP(value, values.values) {
    return float(value);
  };
}

double roundingOf(Element element) {
  switch (element) {
    case Element::FLOAT32:
      return 0x1p-24;
    case Element::BFLOAT16:
      return 0x1p-8;
    case Element::FLOAT16:
      return 0x1p-11;
  }
  KJ_UNREACHABLE;
}

double distance(const Tensor& a, const Tensor& b) {
  KJ_REQUIRE(a.images == b.images && a.shape == b.shape);
  double largest = 0;
  for (size_t i = 0; i < a.values.size(); ++i) {
    double error = std::abs(a.values[i] - b.values[i]) / (1 + std::abs(b.values[i]));
    if (!(error <= largest)) largest = error;
    if (std::isnan(error)) break;
  }
  return largest;
}

}  // namespace nn::cuda

#include "nn/cuda/testing/host_convolution.h"

#include <kj/debug.h>

namespace nn::cuda {

namespace {

// Values of any element, read and written by index.
class Values {
public:
  Values(Element element, const void* data): element(element), data(const_cast<void*>(data)) {}

  double at(size_t i) const {
    switch (element) {
      case Element::FLOAT32:
        return static_cast<const float*>(data)[i];
      case Element::BFLOAT16:
        return load(static_cast<const Bfloat16*>(data)[i]);
      case Element::FLOAT16:
        return load(static_cast<const Float16*>(data)[i]);
    }
    KJ_UNREACHABLE;
  }
  void set(size_t i, double value) {
    switch (element) {
      case Element::FLOAT32:
        return store(static_cast<float*>(data)[i], float(value));
      case Element::BFLOAT16:
        return store(static_cast<Bfloat16*>(data)[i], float(value));
      case Element::FLOAT16:
        return store(static_cast<Float16*>(data)[i], float(value));
    }
    KJ_UNREACHABLE;
  }

private:
  Element element;
  void* data;
};

size_t pixel(const BatchLayout& extent, uint image, uint row, uint column) {
  return ((size_t(image) * extent.height + row) * extent.width + column) * extent.stride;
}

// Calls each(pixel of x, place in a filter, pixel of y) for all that the convolution combines. All
// three are offsets in values.
template <typename Each>
void eachMeeting(const ConvolutionProblem& s, Each&& each) {
  for (uint n = 0; n < s.images; n++) {
    for (uint i = 0; i < s.y.height; i++) {
      for (uint j = 0; j < s.y.width; j++) {
        for (uint u = 0; u < s.kernelHeight; u++) {
          for (uint v = 0; v < s.kernelWidth; v++) {
            // A row or column below zero wraps around to a large number.
            uint row = i * s.stride + u - s.pad, column = j * s.stride + v - s.pad;
            if (row >= s.x.height || column >= s.x.width) continue;
            each(pixel(s.x, n, row, column), size_t(u * s.kernelWidth + v) * s.x.channels,
                pixel(s.y, n, i, j));
          }
        }
      }
    }
  }
}

}  // namespace

void convolveOnHost(
    const ConvolutionProblem& s, Direction direction, const void* a, const void* b, void* c) {
  size_t filter = size_t(s.kernelHeight) * s.kernelWidth * s.x.channels;  // values
  size_t xSize = size_t(s.images) * s.x.height * s.x.width * s.x.stride;
  size_t ySize = size_t(s.images) * s.y.height * s.y.width * s.y.stride;
  Values left(s.element, a), right(s.element, b);
  Values to(direction == Direction::FORWARD ? s.output : s.element, c);

  size_t size = direction == Direction::FORWARD         ? ySize
                : direction == Direction::BACKWARD_DATA ? xSize
                                                        : s.y.channels * filter;
  auto sums = kj::heapArray<double>(size);
  for (auto& sum: sums) sum = 0;
  eachMeeting(s, [&](size_t x, size_t w, size_t y) {
    for (uint k = 0; k < s.y.channels; k++) {
      for (uint ch = 0; ch < s.x.channels; ch++) {
        size_t place = k * filter + w + ch;
        switch (direction) {
          case Direction::FORWARD:
            sums[y + k] += left.at(x + ch) * right.at(place);
            break;
          case Direction::BACKWARD_DATA:
            sums[x + ch] += left.at(y + k) * right.at(place);
            break;
          case Direction::BACKWARD_FILTERS:
            sums[place] += left.at(x + ch) * right.at(y + k);
            break;
        }
      }
    }
  });
  // Writes only the values of this tensor. Values of others may lie between its pixels.
  auto extent = direction == Direction::FORWARD ? s.y : s.x;
  for (size_t i = 0; i < size; i++) {
    bool isOurs = direction == Direction::BACKWARD_FILTERS || i % extent.stride < extent.channels;
    if (isOurs) to.set(i, sums[i]);
  }
}

}  // namespace nn::cuda

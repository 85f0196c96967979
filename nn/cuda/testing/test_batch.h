// nn/cuda/testing/test_batch.h: batches in memory as kernels see them, to compare with plain loops.
#pragma once

#include <kj/array.h>

#include "nn/cuda/kernels.h"
#include "nn/reference/loops.h"

namespace nn::cuda {

using kj::uint;
using reference::Tensor;

// The layout of a batch in memory.
enum class Form {
  PADDED,        // alone, with zeros after the channels
  PART,          // between a concat's other channels, at any address
  ALIGNED_PART,  // the last part of a concat: packs can be moved, and zeros follow it
};

class Batch {
public:
  // Every byte is 0xff, so every value is a NaN.
  Batch(Element element, Form form, uint images, Shape shape);
  // An input of a kernel: `values` rounded to the element, with zeros after the channels.
  Batch(Element element, Form form, const Tensor& values);

  View view() const;

  // Rounds `values` to the element. Values after the channels stay unchanged.
  void fill(const Tensor& values);

  // Requires that values after the channels are 0, and that nothing outside of the view was
  // changed.
  Tensor values() const;

  Plane plane() const { return {shape.height, shape.width}; }

private:
  struct alignas(16) Line {
    kj::byte bytes[16];
  };

  Element element;
  uint images;
  Shape shape;
  uint width, stride, offset;  // in values
  kj::Array<Line> memory;

  size_t placeOf(uint image, uint channel, uint row, uint column) const;
};

// Normal values, times `scale` plus `shift`: the same for the same seed.
Tensor drawTensor(uint seed, uint images, Shape shape, double scale = 1, double shift = 0);
kj::Array<float> drawFloats(uint seed, uint count);

// The largest relative error of rounding to the element.
double roundingOf(Element element);

// The largest |a - b| / (1 + |b|), or NaN if there is a NaN among the values.
double distance(const Tensor& a, const Tensor& b);

}  // namespace nn::cuda

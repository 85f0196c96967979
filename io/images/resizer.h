// io/images/resizer.h: resizes an image row by row, while it is decoded.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/function.h>

namespace io {

using kj::uint;

// Part of an image along one side: `size` pixels from `begin` on. Both may be fractions.
struct Extent {
  double begin;
  double size;
};

// Resizes images with a triangle as the filter, as Pillow's BILINEAR does: when it shrinks by s, a
// new pixel is the weighted mean of the 2·s pixels around its centre along each side. All in
// float32, and the same bits on every machine. For one thread. Keeps its memory for the next image.
class Resizer {
public:
  // Every pixel has this many values, side by side.
  static constexpr uint VALUES = 4;

  // The next image has `height` × `width` pixels. `rows` and `columns` of it become an image of
  // `newHeight` × `newWidth` pixels. Pixels outside of `rows` and `columns` have no influence,
  // except where these end within a pixel.
  void begin(uint height, uint width, Extent rows, Extent columns, uint newHeight, uint newWidth);

  // Takes the next row of the image: `width` pixels of VALUES bytes. Calls `take` for each row of
  // the new image that is complete: with its number, and VALUES planes of newWidth values from 0 to
  // 255. These are valid until it returns.
  void add(kj::ArrayPtr<const kj::byte> row,
      kj::FunctionParam<void(uint y, kj::ArrayPtr<const float> planes)> take);

  // The old pixels that make a new pixel, along one side.
  struct Taps {
    uint first;  // pixel
    uint count;
  };

private:
  struct Side {
    uint size = 0;         // of the new image
    kj::Array<Taps> taps;  // one per new pixel
    // `weights` holds `tapsMax` weights for each new pixel. `tapsMax` is even. Weights after the
    // last tap of a pixel are 0. Each weight is stored `copies` times, one after the other: see
    // set().
    uint tapsMax = 0;
    kj::Array<float> weights;

    void set(uint pixels, Extent extent, uint newSize, uint copies);
  };

  Side vertical, horizontal;
  uint width = 0;
  uint added = 0;     // rows
  uint finished = 0;  // rows of the new image
  // The last rows of the image. Row y is number y mod `kept`. As bytes, because as floats they
  // would fill the first-level cache.
  uint kept = 0;
  size_t stride = 0;  // values of one of them, with padding
  kj::Array<kj::byte> rows;
  kj::Array<float> blended;  // a row of the image's width, made of kept rows
  kj::Array<float> done;     // a row of the new image, as planes
};

}  // namespace io

// nn/raw_batch.h: batches of images as they are stored, bytes, for programs that augment them.
#pragma once

#include <kj/array.h>

#include "nn/network/ops.h"

namespace nn {

// How stored images become the network's input, which may be smaller or larger: with top, left and
// mirror of a row's Crop,
//
//     y[c,i,j] = (x[c, top+i, left+j'] - mean) · factor[c],   j' = j or, mirrored, width-1-j
//
// where mean is that of the mean image at [c, top+i, left+j'] or means[c]. Outside of the image x
// and the mean image are those of the nearest row and column inside, or if it `reflects`, row -1 is
// row 1; x is `grey` if that is there. All in float32.
struct RawImages {
  Shape shape;  // of each: C×H×W bytes
  bool reflects = false;
  kj::Maybe<float> grey;
  kj::ArrayPtr<const float> meanImage;  // of `shape`; empty: there are means
  kj::ArrayPtr<const float> means;      // C
  kj::ArrayPtr<const float> factors;    // C
  uint64_t kept = 0;  // so many stay with the program; 0: each batch brings its own
};

// What was drawn for a row.
struct Crop {
  int32_t top, left;  // in the stored image, in pixels; negative: before it
  bool mirror;
};

// N rows. Those whose label is -1 are zeros, whatever is said of them.
struct RawBatch {
  kj::ArrayPtr<const kj::byte> images;   // N×C×H×W, or none where images are kept:
  kj::ArrayPtr<const uint64_t> numbers;  // N of those
  kj::ArrayPtr<const Crop> crops;        // N
  kj::ArrayPtr<const int32_t> labels;    // N; see Program::setBatch()
  kj::ArrayPtr<const uint64_t> draws;    // N or none; likewise
};

// A program that takes raw batches. Called by the program's thread.
class RawInput {
public:
  // Memory of the host that a batch is brought from the fastest; zeros. The program outlives it.
  virtual kj::Array<kj::byte> allocate(size_t bytes) = 0;
  // Of images that are kept: those from number `first` on, N×C×H×W. They are there when it returns.
  virtual void keep(uint64_t first, kj::ArrayPtr<const kj::byte> images) = 0;

  // The batch of the next forward(…, 0), which may be brought while the work of the step before is
  // still under way: it may be called once all segments of that were asked to go forward. What is
  // in `batch.images` must stay unchanged until awaitBatch(); the rest is copied.
  virtual void setBatch(const RawBatch& batch) = 0;
  virtual void awaitBatch() = 0;
};

}  // namespace nn

// nn/raw_batch.h: batches of images as they are stored, bytes, for programs that augment them.
#pragma once

#include <kj/array.h>

#include "nn/network/ops.h"
#include "nn/raw_row.h"

namespace nn {

// How stored images become the network's input, which may be smaller or larger. With top and left
// of a RawRow,
//
//     y[c,i,j] = (x[c, top+i, left+j'] - mean) · factor[c],   j' = j or, mirrored, width-1-j
//
// where mean is the mean image at [c, top+i, left+j'], or means[c]. Outside of the stored image, x
// and the mean image have the values of the nearest row and column inside. With `reflects`, row -1
// is row 1 instead. With `grey`, x is `grey` outside of the image. All in float32.
struct RawImages {
  Shape shape;  // of each: C×H×W bytes
  bool reflects = false;
  kj::Maybe<float> grey;
  kj::ArrayPtr<const float> meanImage;  // of `shape`; empty: there are means
  kj::ArrayPtr<const float> means;      // C
  kj::ArrayPtr<const float> factors;    // C
  uint64_t kept = 0;  // so many stay with the program; 0: each batch brings its own
};

// N rows. A row whose label is -1 becomes zeros, whatever `rows` says.
struct RawBatch {
  kj::ArrayPtr<const kj::byte> images;  // N×C×H×W, those of the rows; empty if images are kept
  kj::ArrayPtr<const RawRow> rows;      // N; `image` counts only if images are kept
  kj::ArrayPtr<const int32_t> labels;   // N; see Program::setBatch()
  kj::ArrayPtr<const uint64_t> draws;   // N or none; see Program::setBatch()
};

// A program that takes raw batches. Called by the program's thread.
class RawInput {
public:
  // Zeroed memory of the host from which a batch reaches the program fastest. The program outlives
  // it.
  virtual kj::Array<kj::byte> allocate(size_t bytes) = 0;
  // Stores the images from number `first` on, N×C×H×W, which are kept. They are there when it
  // returns.
  virtual void keep(uint64_t first, kj::ArrayPtr<const kj::byte> images) = 0;

  // Sets the batch of the next forward(…, 0). It may be called once all segments of the step before
  // were asked to go forward: the batch may travel while the work of that step is still under way.
  // `batch.images` must stay unchanged until awaitBatch(). The rest is copied.
  virtual void setBatch(const RawBatch& batch) = 0;
  virtual void awaitBatch() = 0;
};

}  // namespace nn

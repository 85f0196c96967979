// io/batches/first_images.h: the first training images, for initial parameters that depend on them.
#pragma once

#include <kj/array.h>

#include "io/datasets/datasets.h"

namespace io {

// Returns the first `count` training images, or all if there are fewer: N×C×H×W of
// dataset.batchShape(). They are as in a batch, but cropped at the centre and not mirrored. Leaves
// out records that are held out. data.on_bad_record decides whether a bad record is an error, or is
// left out without a replacement. All workers get the same images. For count 0 the result is empty;
// otherwise it throws if there is no image.
kj::Array<float> firstImages(const Dataset& dataset, const DataConfig& config, uint64_t count);

}  // namespace io

// io/batches/first_images.h: the first training images, as what is made before training needs them.
#pragma once

#include <kj/array.h>

#include "io/datasets/datasets.h"

namespace io {

// The first `count` training images, or as many as there are: N×C×H×W of dataset.batchShape(), as
// in a batch but un-augmented: cropped at the centre, not mirrored. Records that are held out are
// none of them; a bad one is left out, or thrown over as data.on_bad_record says. The same for all
// workers; empty for 0, else at least one image, or it throws.
kj::Array<float> firstImages(const Dataset& dataset, const DataConfig& config, uint64_t count);

}  // namespace io

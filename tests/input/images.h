// tests/input/images.h: small data sets of each kind, with all that may be done to an image.
#pragma once

#include "io/datasets/datasets.h"
#include "io/testing/scratch.h"

namespace tests {

using kj::uint;

// What a data set is made of, and what is done to it.
struct ImagesCase {
  const char* name;
  io::ImageShape stored;  // of the first image
  bool isJpeg;
  bool varies;  // from image to image, in size
  io::AugmentConfig (*augment)();
};
extern const kj::ArrayPtr<const ImagesCase> IMAGES_CASES;

// Records packed by hand: 23 of training and 11 of validation, of classes from 0 on.
struct Images {
  explicit Images(const ImagesCase& c);

  kj::Own<io::Dataset> open() const;

  io::Scratch scratch;
  io::DataConfig config;  // batches of 4, one reader
};

}  // namespace tests

// tests/input/images.h: small data sets of each kind, with every kind of augmentation.
#pragma once

#include "io/datasets/datasets.h"
#include "io/testing/scratch.h"

namespace tests {

using kj::uint;

// A data set, and how its images are augmented.
struct ImagesCase {
  const char* name;
  io::ImageShape stored;  // of the first image
  bool isJpeg;
  bool varies;  // images differ in size
  io::AugmentConfig (*augment)();
};
extern const kj::ArrayPtr<const ImagesCase> IMAGES_CASES;

// A folder of records that the test writes: 23 for training and 11 for validation. Classes count
// from 0.
struct Images {
  explicit Images(const ImagesCase& c);

  kj::Own<io::Dataset> open() const;

  io::Scratch scratch;
  io::DataConfig config;  // batches of 4, one reader
};

}  // namespace tests

// io/datasets/idx.h: images and labels in MNIST's format (IDX).
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "io/image.h"

namespace io {

// The content of a file of images and of its file of labels.
struct IdxImages {
  ImageShape shape;                     // of every image
  kj::ArrayPtr<const kj::byte> pixels;  // one image after another
  kj::ArrayPtr<const kj::byte> labels;  // one per image

  // The result is valid as long as the files.
  ImageView image(size_t i) const;
};

// Finds the images and labels in two files: each has a magic number, the size of each dimension
// (all big-endian), and then the bytes. The result points into the files. Throws if the files do
// not have that format, or do not belong together. `name` stands for them in messages: "the
// training files".
IdxImages parseIdx(
    kj::StringPtr name, kj::ArrayPtr<const kj::byte> images, kj::ArrayPtr<const kj::byte> labels);

}  // namespace io

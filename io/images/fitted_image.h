// io/images/fitted_image.h: converts image files of the user to the form in which a data set stores
// images.
#pragma once

#include <kj/array.h>

#include "io/images/augment.h"
#include "io/images/kept_image.h"
#include "io/images/resizer.h"

namespace io {

// Converts image files for a network that was trained on another data set, on one thread.
class ImageFitter {
public:
  // `stored` is the shape of the images in the data set of `config`, or, if they differ, the shape
  // in a batch. All arguments must outlive it.
  ImageFitter(const DataConfig& config, ImageShape stored, const Augmenter& augmenter)
      : config(config), stored(stored), augmenter(augmenter) {}

  // Returns the image of a JPEG or PNG file. An image that the data set could contain is converted
  // as by an import. Any other image is shrunk or enlarged until it covers `stored`, and the excess
  // on two sides is cut off. If the data set has grey images, colours become grey: 0.299 R + 0.587
  // G + 0.114 B. The result may point to `file`. Throws if the file cannot be used; the text begins
  // with a verb.
  KeptImage fit(kj::ArrayPtr<const kj::byte> file);

private:
  // Returns the image as planes that cover `shape`.
  KeptImage cover(kj::ArrayPtr<const kj::byte> file, ImageShape shape);

  const DataConfig& config;
  const ImageShape stored;
  const Augmenter& augmenter;
  ImageTools tools;
  Resizer resizer;
};

}  // namespace io

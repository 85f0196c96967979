// runner/export/preprocessing.h: the steps from a stored image to the input of the network.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "io/data_config.h"
#include "io/images/augment.h"

namespace runner {

using kj::uint;

// How validation makes the centre view of an image: resize it, crop the middle, then y = (x - mean)
// · factor.
struct Preprocessing {
  io::ImageShape images;  // of the data set; all zero for a data set of the user's own images
  io::ImageShape view;    // what the network takes
  uint resizeShortSide;   // 0: not resized
  // The side of the cropped square, in pixels. 0: the whole image. If `centreCrop` is not 0, crops
  // a square whose side is this share of the shorter side, and resizes it to `crop`.
  uint crop;
  double centreCrop;
  // How many pixels beyond the edge a crop may reach, and what fills them.
  uint pad;
  io::Padding padMode;
  float padValue;

  kj::Array<float> means;    // one per channel, or, as C×H×W, one per value of the view
  kj::Array<float> factors;  // one per channel

  bool hasMeanImage() const { return means.size() != factors.size(); }
  bool subtracts() const;   // whether a mean is not 0
  bool multiplies() const;  // whether a factor is not 1

  // The same as one line of JSON, for people and other programs. A mean image is `true`.
  kj::String toJson() const;
};

// `augmenter` must be one that `config` describes.
Preprocessing preprocessingOf(const io::DataConfig& config, const io::Augmenter& augmenter);

}  // namespace runner

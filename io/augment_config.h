// io/augment_config.h: the table `augment` of [data]: how each image is changed before it enters a
// batch.
#pragma once

#include <kj/array.h>
#include <kj/common.h>

#include "configs/language/reader.h"

namespace io {

using kj::uint;

// Where training images are cropped.
enum class CropPlace { RANDOM, CENTRE };

// What a crop shows beyond the edge of its image.
enum class Padding { REFLECT, EDGE, VALUE };

// Which training images are swapped left and right. NEVER: none. RANDOM: each pass draws for each
// image. ALTERNATE: one draw per image says whether it is swapped in even or in odd passes.
enum class Mirror { NEVER, RANDOM, ALTERNATE };

// The limits of an image's side, in pixels. A square of the largest has IMAGE_PIXELS_MAX pixels.
constexpr configs::IntegerLimits SIDES = {0, 8192};

// How much the colours of training images vary at random. 0: not at all.
struct ColourRanges {
  // Factors are drawn from 1 - x to 1 + x.
  double brightness = 0;
  double contrast = 0;
  double saturation = 0;
  double lighting = 0;  // a standard deviation: see `lighting` in read()

  bool any() const { return brightness > 0 || contrast > 0 || saturation > 0 || lighting > 0; }
};

// How images are augmented between record and batch, in this order: pad, crop, resize, change
// colours, subtract, mirror, divide, scale, cut out. The mean image is padded and cropped like the
// image. As in MXNet, it is subtracted before mirroring.
struct AugmentConfig {
  uint pad = 0;  // pixels that a crop may reach over each side
  Padding padMode = Padding::REFLECT;
  double padValue = 0;                   // the grey level of VALUE, before anything is subtracted
  uint crop = 0;                         // pixels per side; 0: the whole image
  CropPlace cropAt = CropPlace::RANDOM;  // in training; validation crops at the centre
  // Crops that are resized to `crop` (Szegedy et al. 2015, arXiv 1409.4842): in training, the least
  // and the largest share of the image's area. 0 and 0: crops are not resized.
  double areaMin = 0;
  double areaMax = 0;
  double aspectMin = 0;  // their width, divided by their height
  double aspectMax = 0;
  double centreCrop = 0;  // in validation: their side as a share of the image's shorter side
  Mirror mirror = Mirror::NEVER;  // in training only
  // subtract the mean image of the training records: see Dataset::meanImage()
  bool meanImage = false;
  kj::Array<double> mean;       // subtract one constant per channel (0 to 255), or one
                                // for all; empty: none
  kj::Array<double> deviation;  // divide by one constant per channel, or one for all; empty: none
  double scale = 1;             // multiply by this last

  ColourRanges colours;  // in training only
  uint cutout = 0;       // side of a square that training does not show, in pixels; 0: none

  bool resizes() const { return areaMax > 0; }

  static AugmentConfig read(configs::Reader& reader);
};

}  // namespace io

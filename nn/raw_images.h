// nn/raw_images.h: stored images, as bytes, and how they become the input of a network.
#pragma once

// Compilers for devices read this file too: no KJ.
#include <stdint.h>

namespace nn {

// The settings that all images of a run share. The input may be smaller or larger than a stored
// image. With top and left of a RawRow,
//
//     y[c,i,j] = (x[c, top+i, left+j'] - mean) · factor[c],   j' = j or, mirrored, W-1-j
//
// where W is the width of the input, not of the stored image. mean is the mean image at
// [c, top+i, left+j'], or means[c]. Outside of the stored image, x and the mean image have the
// values of the nearest row and column inside. With `reflects`, row -1 is row 1 instead. With
// `hasGrey`, x is `grey` outside of the image. All in float32.
struct RawImages {
  uint32_t channels, height, width;  // of each stored image: C×H×W bytes
  bool reflects = false;
  bool hasGrey = false;
  float grey = 0;
  const float* meanImage = nullptr;  // C×H×W; null: the means
  const float* means;                // C
  const float* factors;              // C
};

// Which stored image a row of a batch shows, and how it is cropped.
struct RawRow {
  // Its number among the images that are kept. On a device: the address of the image, or 0 for a
  // row of zeros.
  uint64_t image;
  int32_t top, left;  // of the crop in the stored image, in pixels; negative: outside of the image
  uint32_t isMirrored;
};

}  // namespace nn

// nn/raw_row.h: which stored image a row of a raw batch shows, and how it is cropped.
#pragma once

// Compilers for devices read this file too: no KJ.
#include <stdint.h>

namespace nn {

struct RawRow {
  // Its number among the images that are kept. On a device: the address of the image, or 0 for a
  // row of zeros.
  uint64_t image;
  int32_t top, left;  // of the crop in the stored image, in pixels; negative: before it
  uint32_t isMirrored;
};

}  // namespace nn

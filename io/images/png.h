// io/images/png.h: converts PNG files to pixels, by libpng.
#pragma once

#include <kj/array.h>
#include <kj/common.h>

#include "io/image.h"

namespace io {

// Whether a file begins as PNG files do.
bool isPng(kj::ArrayPtr<const kj::byte> file);

// The pixels of a PNG file.
struct PngImage {
  ImageShape shape;            // with 3 channels
  kj::Array<kj::byte> pixels;  // H×W×C
};

// Decodes a PNG file of any kind: a grey image gets three equal channels, 16 bits per channel are
// rounded to 8, and transparency is dropped. Gamma and colour profiles are ignored, as in most
// programs that train networks.
//
// Throws if it cannot be decoded as a whole, or has more than IMAGE_PIXELS_MAX pixels; the text
// begins with a verb ("is not …", "has …", "cannot be decoded: …").
PngImage decodePng(kj::ArrayPtr<const kj::byte> file);

}  // namespace io

// io/images/orientation.h: reads the orientation of a camera from Exif data, and turns images
// accordingly.
#pragma once

#include <kj/array.h>

#include "io/image.h"

namespace io {

// The orientation of an image that stands upright.
constexpr uint UPRIGHT = 1;

// Returns the orientation that the Exif data of a JPEG or PNG file state (Exif 2.3, tag 274): 1 to
// 8. Returns UPRIGHT if they do not state one, or are damaged.
uint orientationOf(kj::ArrayPtr<const kj::byte> file);

// Returns `pixels` (H×W×C, of `shape`) turned and mirrored so that an image of this orientation
// stands upright. Changes `shape` to that of the result.
kj::Array<kj::byte> upright(
    kj::ArrayPtr<const kj::byte> pixels, ImageShape& shape, uint orientation);

}  // namespace io

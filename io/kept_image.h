// io/kept_image.h: images in the form in which records keep them.
#pragma once

#include <kj/array.h>

#include "io/data_config.h"
#include "io/jpeg.h"

namespace io {

// An image as its record will keep it.
struct KeptImage {
  Encoding::Word encoding;
  ImageShape shape;
  kj::ArrayPtr<const kj::byte> bytes;  // somebody else's, or `own`
  kj::Array<kj::byte> own;
};

// `image`, resized and encoded as `config` says.
KeptImage keep(const DataConfig& config, ImageView image);

// The image of a JPEG file. The file stays as it is where `config` allows it. It is decoded in any
// case. Throws over a file that cannot be used or decoded; what is thrown begins with a verb.
KeptImage keepJpeg(
    const DataConfig& config, kj::ArrayPtr<const kj::byte> file, JpegDecoder& decoder);

}  // namespace io

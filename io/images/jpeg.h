// io/images/jpeg.h: converts JPEG files to pixels and back, by libjpeg-turbo.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/function.h>

#include "io/image.h"

namespace io {

// Whether a file begins as JPEG files do.
bool isJpeg(kj::ArrayPtr<const kj::byte> file);

// Decodes JPEG files, on one thread. A file does not influence later files.
//
// The text of an exception about a file begins with a verb ("is not a JPEG file", "has …", "cannot
// be decoded: …"), so that the caller can put the file's name before it.
class JpegDecoder {
public:
  // Returns height and width from the file's header, with 3 channels. Throws if it is not a JPEG
  // file, or has more than IMAGE_PIXELS_MAX pixels.
  ImageShape shapeOf(kj::ArrayPtr<const kj::byte> file);

  // Returns the pixels, H×W×C, valid until the next call. `shape` must be the result of shapeOf(),
  // with 3 channels (RGB; a grey file gives three equal ones) or with 1 (grey). A warning of
  // libjpeg (a file that ends early, a bad code) is an error, because the pixels after it are
  // invented.
  kj::ArrayPtr<const kj::byte> decode(kj::ArrayPtr<const kj::byte> file, ImageShape shape);

  // Decodes `region` of the image, which is shrunk by `shrink` (1, 2, 4 or 8) first: a pixel is
  // then the mean of shrink × shrink pixels, as libjpeg computes it. `region` counts shrunk pixels.
  // Calls `take` with its rows, from the top to the bottom. A row has 4 bytes per pixel (RGB and a
  // meaningless one), or 1 if `shape` has 1 channel. Without shrinking, the pixels are those of
  // decode(). Parts of the file that the region does not need are skipped, so damage there goes
  // unnoticed.
  void decodeRegion(kj::ArrayPtr<const kj::byte> file, ImageShape shape, uint shrink, Region region,
      kj::FunctionParam<void(kj::ArrayPtr<const kj::byte> row)> take);

private:
  kj::Array<kj::byte> pixels;
};

// The longest side of a JPEG file in libjpeg-turbo, in pixels.
constexpr uint JPEG_SIDE_MAX = 65500;

// Returns the image as a JPEG file of quality 95 without subsampling of colours. The image has 1 or
// 3 channels. Throws if it is too large; the text begins with a verb.
kj::Array<kj::byte> encodeJpeg(ImageView image);

}  // namespace io

// io/images/jpeg.h: converts JPEG files to pixels and back, by libjpeg-turbo.
#pragma once

#include <kj/array.h>
#include <kj/common.h>

#include "io/image.h"

namespace io {

// Decodes JPEG files, on one thread. A file that is refused does not disturb those after it.
//
// The text of an exception about a file begins with a verb ("is not a JPEG file", "has …", "cannot
// be decoded: …"), so that the caller can put the file's name before it.
class JpegDecoder {
public:
  JpegDecoder();
  ~JpegDecoder() noexcept(false);
  KJ_DISALLOW_COPY(JpegDecoder);

  // Returns height and width from the file's header, with 3 channels. Throws if it is not a JPEG
  // file, or has more than IMAGE_PIXELS_MAX pixels.
  ImageShape shapeOf(kj::ArrayPtr<const kj::byte> file);

  // Returns the pixels, H×W×C, valid until the next call. `shape` must be the result of shapeOf(),
  // with 3 channels (RGB; a grey file gives three equal ones) or with 1 (grey). A warning of
  // libjpeg (a file that ends early, a bad code) is an error, because the pixels after it are
  // invented.
  kj::ArrayPtr<const kj::byte> decode(kj::ArrayPtr<const kj::byte> file, ImageShape shape);

private:
  // libjpeg remembers where it stopped in a file that it gave up, and would continue from there in
  // the next one. Therefore a handle that has failed is replaced.
  void replaceHandle();

  void* handle;
  kj::Array<kj::byte> pixels;
};

// The longest side of a JPEG file in libjpeg-turbo, in pixels.
constexpr uint JPEG_SIDE_MAX = 65500;

// Returns the image as a JPEG file of quality 95 without subsampling of colours. The image has 1 or
// 3 channels. Throws if it is too large; the text begins with a verb.
kj::Array<kj::byte> encodeJpeg(ImageView image);

}  // namespace io

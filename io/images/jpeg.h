// io/images/jpeg.h: JPEG files to pixels and back, by libjpeg-turbo.
#pragma once

#include <kj/array.h>
#include <kj/common.h>

#include "io/image.h"

namespace io {

// Decodes JPEG files, for one thread. A file that is refused does not disturb those that follow.
//
// What is thrown over a file begins with the verb ("is not a JPEG file", "has …", "cannot be
// decoded: …"), so that the caller can put the file's name before it.
class JpegDecoder {
public:
  JpegDecoder();
  ~JpegDecoder() noexcept(false);
  KJ_DISALLOW_COPY(JpegDecoder);

  // Height and width as the file's header says, with 3 channels. Throws if it is not a JPEG file,
  // or has more than IMAGE_PIXELS_MAX pixels.
  ImageShape shapeOf(kj::ArrayPtr<const kj::byte> file);

  // The pixels, H×W×C, valid until the next call. `shape` must be what shapeOf() says, with 3
  // channels (RGB; a grey file gives three equal ones) or 1 (grey). A warning of libjpeg (a file
  // that ends early, a bad code) is an error: the pixels behind it are made up.
  kj::ArrayPtr<const kj::byte> decode(kj::ArrayPtr<const kj::byte> file, ImageShape shape);

private:
  // Libjpeg remembers where it stopped in a file that it gave up, and goes on from there with the
  // next one. So a handle that has failed is replaced.
  void replaceHandle();

  void* handle;
  kj::Array<kj::byte> pixels;
};

// The longest side that a JPEG file of libjpeg-turbo may have, in pixels.
constexpr uint JPEG_SIDE_MAX = 65500;

// The image as a JPEG file of quality 95 without subsampling of colours. 1 or 3 channels. Throws if
// it is too large; what is thrown begins with a verb.
kj::Array<kj::byte> encodeJpeg(ImageView image);

}  // namespace io

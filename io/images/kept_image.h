// io/images/kept_image.h: images in the form in which records keep them.
#pragma once

#include <kj/array.h>
#include <kj/exception.h>
#include <kj/string.h>

#include "io/data_config.h"
#include "io/images/jpeg.h"

namespace io {

// An image as its record will keep it.
struct KeptImage {
  Encoding encoding;
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

// A JPEG file of an import, and what becomes of it.
struct ImageFile {
  kj::String path;
  uint32_t label;
  kj::Array<kj::byte> bytes;
  kj::Maybe<kj::Exception> problem;  // why nothing is kept of it; begins with a verb
  kj::Maybe<KeptImage> kept;         // may point to `bytes`
};

// Calls keepJpeg() on all cores. Decoding is most of the work of an import.
class ImageKeeper {
public:
  explicit ImageKeeper(const DataConfig& config);

  // So many files at once keep every core busy.
  size_t filesAtOnce() const { return 4 * decoders.size(); }
  // Fills in `kept` or `problem` of each file that has no problem yet.
  void keep(kj::ArrayPtr<ImageFile> files);

private:
  const DataConfig& config;
  kj::Array<JpegDecoder> decoders;  // one per core
};

}  // namespace io

// io/images/kept_image.h: converts images to the form in which records store them.
#pragma once

#include <kj/array.h>
#include <kj/exception.h>
#include <kj/string.h>

#include "io/data_config.h"
#include "io/images/jpeg.h"

namespace io {

// An image as its record will store it.
struct KeptImage {
  Encoding encoding;
  ImageShape shape;
  kj::ArrayPtr<const kj::byte> bytes;  // points to memory of the caller, or to `own`
  kj::Array<kj::byte> own;
};

// Returns `image`, resized and encoded by `config`.
KeptImage keep(const DataConfig& config, ImageView image);

// Returns the image of a JPEG or PNG file. A JPEG file stays unchanged if `config` allows this and
// Exif does not say that the camera was turned. It is decoded in any case. Throws if the file
// cannot be used or decoded; the text begins with a verb.
KeptImage keepFile(
    const DataConfig& config, kj::ArrayPtr<const kj::byte> file, JpegDecoder& decoder);

// An image file of an import, and the result.
struct ImageFile {
  kj::String path;
  uint32_t label;
  kj::Array<kj::byte> bytes;
  kj::Maybe<kj::Exception> problem;  // why the file cannot be used; begins with a verb
  kj::Maybe<KeptImage> kept;         // may point to `bytes`
};

// Calls keepFile() on all cores. Decoding is most of the work of an import.
class ImageKeeper {
public:
  explicit ImageKeeper(const DataConfig& config);

  // How many files keep every core busy.
  size_t filesAtOnce() const { return 4 * decoders.size(); }
  // Sets `kept` or `problem` of each file that has no problem yet.
  void keep(kj::ArrayPtr<ImageFile> files);

private:
  const DataConfig& config;
  kj::Array<JpegDecoder> decoders;  // one per core
};

}  // namespace io

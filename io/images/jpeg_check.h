// io/images/jpeg_check.h: finds out whether a JPEG file is complete, without computing its pixels.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/memory.h>

namespace io {

// Follows the Huffman codes of JPEG files, on one thread. Decoding does this too, and computes the
// pixels, which takes four times as long.
class JpegChecker {
public:
  JpegChecker();
  ~JpegChecker() noexcept(false);

  // Whether `file` is surely one that JpegDecoder::decode() accepts: all of its codes are valid,
  // and it has as many as its size needs. If it returns false, the file may be damaged, or of a
  // less common kind. The common kind is baseline with one scan, and either grey or in three
  // colours. The second and the third colour may be stored half as wide or half as high. `file`
  // must be one that JpegDecoder::shapeOf() accepts.
  bool isSurelyWhole(kj::ArrayPtr<const kj::byte> file);

private:
  struct Tables;
  kj::Own<Tables> tables;
};

}  // namespace io

// io/images/crop_reader.h: turns records into the images of a batch.
#pragma once

#include "io/images/augment.h"
#include "io/images/jpeg.h"
#include "io/images/resizer.h"
#include "io/records/record_db.h"

namespace io {

// Decodes and augments records, on one thread. Of a JPEG file it decodes only what the crop needs,
// where that is possible. Large crops that are resized shrink while they are decoded.
class CropReader {
public:
  // `augmenter` must outlive this object.
  explicit CropReader(const Augmenter& augmenter): augmenter(augmenter) {}

  // Writes the augmented image of `record` to `out`, which has the size of a batch's image. Throws
  // if the record is a JPEG file that cannot be decoded; the text begins with a verb.
  void apply(const Record& record, Augmentation augmentation, kj::ArrayPtr<float> out);
  // The same, but as bytes: planes of the crop, which are neither mirrored nor normalised. See
  // Augmenter::cut(). Does not change colours, and cuts no square out.
  void cut(const Record& record, Augmentation augmentation, kj::ArrayPtr<kj::byte> out);
  // Throws as apply() does if any part of `record` cannot be decoded.
  void requireWhole(const Record& record);
  // Writes the planes of the whole image to `out`.
  void copy(const Record& record, kj::ArrayPtr<kj::byte> out);

private:
  // As apply(), apart from Augmenter::finish().
  void normalise(const Record& record, const Augmentation& augmentation, kj::ArrayPtr<float> out);
  bool canDecodeCrop(const Record& record, Augmentation augmentation) const;
  void resize(const Record& record, Augmentation augmentation,
      kj::FunctionParam<void(uint y, kj::ArrayPtr<const float> planes)> take);

  const Augmenter& augmenter;
  JpegDecoder decoder;
  Resizer resizer;
  kj::Array<kj::byte> row;  // 4 bytes per pixel
};

}  // namespace io

// io/images/augment.h: from the pixels of a record to those of a batch: pad, crop, subtract,
// mirror, divide, scale.
#pragma once

#include <kj/array.h>

#include "io/data_config.h"

namespace io {

// What was drawn for one image.
struct Augmentation {
  int top;  // of the crop in the stored image, in pixels; negative: in the padding before it
  int left;
  bool mirror;

  bool operator==(const Augmentation&) const = default;
};

// Shape of an image in a batch, made from stored images of `stored`.
ImageShape batchShapeOf(const AugmentConfig& config, ImageShape stored);

// Applies what [data.augment] says. Immutable and thread-safe.
//
//     y[c,i,j] = (x[c, top+i, left+j'] - mean) · (scale / deviation[c]),   j' = j or, mirrored,
//     width-1-j
//
// where mean is that of the mean image at [c, top+i, left+j'] or the channel's constant. Outside of
// the stored image x and the mean image are those of the pixel that `pad_mode` names (REFLECT: row
// -1 is row 1), with VALUE x is `pad_value` and the mean image has its edge. All in float32; the
// factor is rounded once.
class Augmenter {
public:
  // Images come out as `shape`. `meanImage` (C×H×W, of `stored`; empty = none) must outlive this.
  // Throws if `mean` or `deviation` has neither one number nor one a channel.
  Augmenter(const AugmentConfig& config, ImageShape shape, ImageShape stored,
      kj::ArrayPtr<const float> meanImage);

  // Whether an image of `stored`, with its padding, is large enough for the crop; true without one.
  bool reaches(ImageShape stored) const;

  // The augmentation of a training image: a function of (seed, pass, record) alone. Throws if
  // `stored` with its padding is smaller than the crop, or not of this shape where there is no
  // crop.
  Augmentation draw(uint64_t seed, uint64_t pass, uint64_t record, ImageShape stored) const;
  // That of a validation image: the centre, or moved from there.
  Augmentation centre(ImageShape stored) const;
  Augmentation view(const View& view, ImageShape stored) const;

  // `out` has the size of `shape`.
  void apply(ImageView image, Augmentation augmentation, kj::ArrayPtr<float> out) const;

  // For whoever applies the rest elsewhere: the pixels of the crop, not mirrored, planes of bytes
  // as they are stored. `out` has the size of `shape`. Where canCut(): a `pad_value` need not be a
  // byte.
  void cut(ImageView image, Augmentation augmentation, kj::ArrayPtr<kj::byte> out) const;
  bool canCut() const;

  const ImageShape shape;

  // What apply() calculates with.
  const Padding padMode;
  const float padValue;
  const kj::ArrayPtr<const float> meanImage;
  const kj::Array<float> means;    // C
  const kj::Array<float> factors;  // C

private:
  void checkSize(ImageShape stored) const;

  Mirror mirror;
  bool crops;
  bool cropsAtRandom;  // in training
  uint pad;
  ImageShape meanShape;
};

}  // namespace io

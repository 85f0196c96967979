// io/images/augment.h: turns the pixels of a record into those of a batch: pad, crop, subtract,
// mirror, divide, scale.
#pragma once

#include <kj/array.h>

#include "io/data_config.h"

namespace io {

// The random choices for one image.
struct Augmentation {
  int top;  // of the crop in the stored image, in pixels; negative: in the padding
  int left;
  bool mirror;

  bool operator==(const Augmentation&) const = default;
};

// Returns the shape of an image in a batch, for stored images of shape `stored`.
ImageShape batchShapeOf(const AugmentConfig& config, ImageShape stored);

// Applies [data.augment]. Immutable and thread-safe.
//
//     y[c,i,j] = (x[c, top+i, left+j'] - mean) · (scale / deviation[c]),   j' = j or, mirrored,
//     width-1-j
//
// Here mean is that of the mean image at [c, top+i, left+j'], or the channel's constant. Outside of
// the stored image, x and the mean image repeat the pixel that `pad_mode` names (REFLECT: row -1 is
// row 1). With VALUE, x is `pad_value` and the mean image repeats its edge. All in float32; the
// factor is rounded once.
class Augmenter {
public:
  // Results have the shape `shape`. `meanImage` (C×H×W, of `stored`; empty: none) must outlive this
  // object. Throws if `mean` or `deviation` has neither one number nor one per channel.
  Augmenter(const AugmentConfig& config, ImageShape shape, ImageShape stored,
      kj::ArrayPtr<const float> meanImage);

  // Whether an image of shape `stored`, with its padding, is large enough for the crop. True if
  // there is no crop.
  bool reaches(ImageShape stored) const;

  // Returns the augmentation of a training image, a function of (seed, pass, record) only. Throws
  // if `stored` with its padding is smaller than the crop. Without a crop, throws if `stored` is
  // not this shape.
  Augmentation draw(uint64_t seed, uint64_t pass, uint64_t record, ImageShape stored) const;
  // Returns the augmentation of a validation image: at the centre, or moved from there.
  Augmentation centre(ImageShape stored) const;
  Augmentation view(const View& view, ImageShape stored) const;

  // Writes the augmented image to `out`, which has the size of `shape`.
  void apply(ImageView image, Augmentation augmentation, kj::ArrayPtr<float> out) const;

  // Writes the pixels of the crop to `out`, which has the size of `shape`: planes of bytes as they
  // are stored, not mirrored. For callers that apply the rest elsewhere. Call it only if canCut():
  // a `pad_value` may not be a byte.
  void cut(ImageView image, Augmentation augmentation, kj::ArrayPtr<kj::byte> out) const;
  bool canCut() const;

  const ImageShape shape;
  const ImageShape stored;  // as given: of the mean image

  // The numbers of apply().
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
};

}  // namespace io

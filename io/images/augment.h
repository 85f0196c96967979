// io/images/augment.h: turns the pixels of a record into those of a batch: pad, crop, resize,
// change colours, subtract, mirror, divide, scale, cut out.
#pragma once

#include <kj/array.h>

#include "configs/language/random.h"
#include "io/data_config.h"
#include "io/images/colours.h"

namespace io {

// A square of an image in a batch. It may reach over the edge.
struct Square {
  int top = 0;
  int left = 0;
  uint side = 0;  // 0: there is no square

  bool operator==(const Square&) const = default;
};

// The random choices for one image.
struct Augmentation {
  int top;  // of the crop in the stored image, in pixels; negative: in the padding
  int left;
  bool mirror;
  // With `crop_area`: the size of the crop in the stored image. Otherwise 0: that of the batch.
  uint height = 0;
  uint width = 0;
  Colours colours{};
  Square hidden{};  // with `cutout`

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
// factor is rounded once. Then finish() changes colours as if that had been done to x, and sets the
// pixels that `cutout` hides to 0.
class Augmenter {
public:
  // Results have the shape `shape`. `meanImage` (C×H×W, of `stored`; empty: none) must outlive this
  // object. Throws if `mean` or `deviation` has neither one number nor one per channel.
  Augmenter(const AugmentConfig& config, ImageShape shape, ImageShape stored,
      kj::ArrayPtr<const float> meanImage);

  // Whether crops differ in size and are resized. crop_reader.h resizes them.
  bool resizes() const { return areaMax > 0; }

  // Whether an image of shape `stored`, with its padding, is large enough for the crop. True if
  // there is no crop, or if crops are resized.
  bool reaches(ImageShape stored) const;

  // Returns the augmentation of a training image, a function of (seed, pass, record) only. Throws
  // if `stored` with its padding is smaller than the crop. Without a crop, throws if `stored`
  // differs from `shape`.
  Augmentation draw(uint64_t seed, uint64_t pass, uint64_t record, ImageShape stored) const;
  // Returns the augmentation of a validation image: at the centre, or moved from there. A crop that
  // is resized stays inside the image.
  Augmentation centre(ImageShape stored) const;
  Augmentation view(const View& view, ImageShape stored) const;

  // Writes row `y` of the image to `out`, which has the size of `shape`. `planes` has the pixels of
  // that row, already cropped and resized: one plane of shape.width values per channel. Further
  // planes are ignored.
  void applyRow(
      kj::ArrayPtr<const float> planes, uint y, bool mirror, kj::ArrayPtr<float> out) const;
  // Does the same for cropped pixels of 1 or 4 bytes each, of which the first are the channels. Not
  // with a mean image.
  void applyRow(
      kj::ArrayPtr<const kj::byte> pixels, uint y, bool mirror, kj::ArrayPtr<float> out) const;
  // Writes the whole image to `out`, which has the size of `shape`. Not for resized crops.
  void apply(ImageView image, Augmentation augmentation, kj::ArrayPtr<float> out) const;

  // Applies the changes that need a whole image to `image`, which the functions above have written.
  void finish(const Augmentation& augmentation, kj::ArrayPtr<float> image) const;
  // Whether training images need finish().
  bool finishes() const { return colours.any() || cutout > 0; }

  // Writes the pixels of the crop to `out`, which has the size of `shape`: planes of bytes as they
  // are stored, not mirrored. For callers that apply the other changes elsewhere. Call it only if
  // canCut() returns true. canCut() returns false for Padding::VALUE with a `pad_value` that is not
  // a whole number from 0 to 255.
  void cut(ImageView image, Augmentation augmentation, kj::ArrayPtr<kj::byte> out) const;
  bool canCut() const;

  const ImageShape shape;
  const ImageShape stored;  // as given: the shape of the mean image

  // The numbers of apply().
  const Padding padMode;
  const float padValue;
  const kj::ArrayPtr<const float> meanImage;
  const kj::Array<float> means;    // C
  const kj::Array<float> factors;  // C

private:
  void checkSize(ImageShape stored) const;
  Augmentation drawPlace(uint64_t seed, uint64_t pass, uint64_t record, ImageShape stored) const;
  Augmentation drawResized(configs::Random& random, ImageShape stored) const;

  Mirror mirror;
  bool crops;
  bool cropsAtRandom;  // in training
  uint pad;
  ColourRanges colours;
  uint cutout;
  // Of crops that are resized.
  double areaMin, areaMax, centreCrop;
  double aspectMin, aspectMax;
  // (aspectMax / aspectMin) to the power of 1/2, 1/4, 1/8 …
  static constexpr uint ASPECT_BITS = 24;
  double aspectRoots[ASPECT_BITS];
};

}  // namespace io

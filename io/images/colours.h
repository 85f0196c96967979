// io/images/colours.h: random changes of an image's colours.
#pragma once

#include <kj/array.h>

#include "configs/language/random.h"
#include "io/augment_config.h"
#include "io/image.h"

namespace io {

// The change of the colours of one image. x is a channel's value of a pixel in grey levels, g the
// grey of the pixel, and m the mean of g over the image:
//
//     y = brightness · (contrast · (saturation · x + (1 - saturation) · g) + (1 - contrast) · m)
//         + light
//
// y is not clipped. g has the weights of ITU-R BT.601, which add up to 1: saturation does not
// change g, and contrast does not change m. Therefore it does not matter in which order the three
// factors are applied. In images of one channel, g is x.
struct Colours {
  double brightness = 1;
  double contrast = 1;
  double saturation = 1;
  double light[3] = {};  // per channel, in grey levels

  bool operator==(const Colours&) const = default;
};

// Draws the changes for one image. Every key always takes the same numbers of `random`, whether or
// not other keys are set.
Colours drawColours(const ColourRanges& ranges, configs::Random& random);

// Changes the colours of `image` in place: planes of `shape`, which has one channel or three. They
// have been normalised already: channel c has the values (x - means[c]) · factors[c]. Goes over the
// planes once, and once before that if there is a contrast. The same bits on every machine.
void changeColours(const Colours& colours, ImageShape shape, kj::ArrayPtr<const float> means,
    kj::ArrayPtr<const float> factors, kj::ArrayPtr<float> image);

}  // namespace io

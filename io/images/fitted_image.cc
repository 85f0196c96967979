#include "io/images/fitted_image.h"

#include <math.h>

#include "configs/language/failure.h"
#include "io/images/orientation.h"
#include "io/images/png.h"

namespace io {

namespace {

kj::byte rounded(float value) {
  return kj::byte(fminf(fmaxf(roundf(value), 0), 255));
}

// Returns the upright image of a file as H×W×3 bytes.
PngImage pixelsOf(kj::ArrayPtr<const kj::byte> file, JpegDecoder& decoder) {
  auto orientation = orientationOf(file);
  if (isPng(file)) {
    auto image = decodePng(file);
    if (orientation != UPRIGHT) image.pixels = upright(image.pixels, image.shape, orientation);
    return image;
  }
  if (file.size() == 0) configs::fail("is empty");
  if (!isJpeg(file)) configs::fail("is neither a JPEG nor a PNG file");
  auto shape = decoder.shapeOf(file);
  auto pixels = decoder.decode(file, shape);
  if (orientation == UPRIGHT) return {shape, kj::heapArray(pixels)};
  auto turned = upright(pixels, shape, orientation);
  return {shape, kj::mv(turned)};
}

}  // namespace

KeptImage ImageFitter::fit(kj::ArrayPtr<const kj::byte> file) {
  if (config.dataset->source->format != DatasetSource::FOLDER) return cover(file, stored);
  auto kept = keepFile(config, file, tools);
  if (augmenter.resizes()) return kept;
  bool isCropped = config.augment.crop > 0;
  if (isCropped ? augmenter.reaches(kept.shape) : kept.shape == stored) return kept;
  return cover(file, isCropped ? augmenter.shape : stored);
}

KeptImage ImageFitter::cover(kj::ArrayPtr<const kj::byte> file, ImageShape shape) {
  if (shape.channels != 1 && shape.channels != 3) {
    configs::fail("cannot be used: the network takes images of ", shape.channels,
        " channels, and an image file gives 1 or 3");
  }
  auto image = pixelsOf(file, tools.decoder);
  uint height = image.shape.height, width = image.shape.width;
  // The largest part of the image with the sides' ratio of `shape`, in the middle.
  double pixelsEach = fmin(double(height) / shape.height, double(width) / shape.width);
  double partHeight = shape.height * pixelsEach, partWidth = shape.width * pixelsEach;
  Extent rows{(height - partHeight) / 2, partHeight};
  Extent columns{(width - partWidth) / 2, partWidth};
  resizer.begin(height, width, rows, columns, shape.height, shape.width);

  size_t plane = size_t(shape.height) * shape.width;
  auto planes = kj::heapArray<kj::byte>(shape.channels * plane);
  auto take = [&](uint y, kj::ArrayPtr<const float> values) {
    for (uint x = 0; x < shape.width; x++) {
      float red = values[x], green = values[shape.width + x], blue = values[2 * shape.width + x];
      auto* to = planes.begin() + size_t(y) * shape.width + x;
      if (shape.channels == 1) {
        *to = rounded(0.299f * red + 0.587f * green + 0.114f * blue);
      } else {
        to[0] = rounded(red);
        to[plane] = rounded(green);
        to[2 * plane] = rounded(blue);
      }
    }
  };
  auto row = kj::heapArray<kj::byte>(size_t(width) * Resizer::VALUES);
  auto from = image.pixels.begin();
  for (uint y = 0; y < height; y++) {
    for (uint x = 0; x < width; x++, from += 3) {
      auto* to = row.begin() + size_t(x) * Resizer::VALUES;
      to[0] = from[0], to[1] = from[1], to[2] = from[2], to[3] = 0;
    }
    resizer.add(row, take);
  }
  return {Encoding::RAW, shape, planes, kj::mv(planes)};
}

}  // namespace io

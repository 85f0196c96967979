// io/image.h: images of uint8 pixels in memory: their shape, a view of them, bilinear resizing.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/string.h>

#include <cstdint>

namespace io {

using kj::uint;

// The size of one image. Arrays of images are N×C×H×W.
struct ImageShape {
  uint channels;
  uint height;
  uint width;

  size_t size() const { return size_t(channels) * height * width; }
  bool operator==(const ImageShape&) const = default;
};

// A part of an image, in pixels.
struct Region {
  uint top;
  uint left;
  uint height;
  uint width;

  bool operator==(const Region&) const = default;
};

// Returns the size of an image for messages, in pixels: width×height, "640×480".
kj::String sizeOf(ImageShape shape);

// Images with more pixels are refused before memory is allocated for them. 64 Mi is twice the
// largest photograph in ImageNet.
constexpr size_t IMAGE_PIXELS_MAX = size_t(1) << 26;

// The order of the bytes of an image: planes (C×H×W, as records keep raw images) or pixels (H×W×C,
// as JPEG is decoded).
enum class Layout { PLANES, PIXELS };

// How the records of a data set store pixels. The values are part of the format of records.
enum class Encoding : uint8_t { RAW, JPEG };

// An image in memory that this struct does not own.
struct ImageView {
  ImageShape shape;
  Layout layout;
  kj::ArrayPtr<const kj::byte> bytes;  // shape.size() bytes
};

// Returns the bytes as C×H×W, or writes them to `out`, which has shape.size() bytes.
kj::Array<kj::byte> toPlanes(ImageView image);
void toPlanes(ImageView image, kj::ArrayPtr<kj::byte> out);

// Returns the shape whose shorter side is `shortSide`. The longer side keeps the ratio, rounded to
// the nearest pixel.
ImageShape resizedShape(ImageShape shape, uint shortSide);

// Returns the image in another size, C×H×W. Interpolates bilinearly between the centres of pixels,
// repeats edges, and rounds to the nearest integer. im2rec's `resize` does the same by default
// (cv::INTER_LINEAR): no smoothing when shrinking.
kj::Array<kj::byte> resize(ImageView image, ImageShape to);

}  // namespace io

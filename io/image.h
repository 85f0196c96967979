// io/image.h: images of uint8 pixels in memory: their shape, a view of them, bilinear resizing.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/string.h>

#include <cstdint>

namespace io {

using kj::uint;

// Size of one image. Arrays of images are N×C×H×W.
struct ImageShape {
  uint channels;
  uint height;
  uint width;

  size_t size() const { return size_t(channels) * height * width; }
  bool operator==(const ImageShape&) const = default;
};

// What messages call the size of an image, in pixels: width×height, "640×480".
kj::String sizeOf(ImageShape shape);

// More pixels than this are refused before memory is taken for them: 64 Mi, twice the largest
// photograph in ImageNet.
constexpr size_t IMAGE_PIXELS_MAX = size_t(1) << 26;

// How the bytes of an image follow each other: planes (C×H×W, as records keep raw images) or pixels
// (H×W×C, as JPEG is decoded).
enum class Layout { PLANES, PIXELS };

// How the records of a data set keep pixels. The values are part of the format of records.
enum class Encoding : uint8_t { RAW, JPEG };

// An image that lies somewhere else.
struct ImageView {
  ImageShape shape;
  Layout layout;
  kj::ArrayPtr<const kj::byte> bytes;  // shape.size() of them
};

// The bytes as C×H×W; `out` has shape.size() of them.
kj::Array<kj::byte> toPlanes(ImageView image);
void toPlanes(ImageView image, kj::ArrayPtr<kj::byte> out);

// The shape whose shorter side is `shortSide`, the longer in proportion, rounded to the nearest
// pixel.
ImageShape resizedShape(ImageShape shape, uint shortSide);

// The image at another size, C×H×W: bilinear interpolation between the centres of pixels, edges
// repeated, rounded to the nearest integer. What im2rec's `resize` does by default
// (cv::INTER_LINEAR): no smoothing when shrinking.
kj::Array<kj::byte> resize(ImageView image, ImageShape to);

}  // namespace io

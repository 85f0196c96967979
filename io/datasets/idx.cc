#include "io/datasets/idx.h"

#include <cstring>

#include "configs/language/failure.h"

namespace io {

namespace {

constexpr size_t IMAGE_HEADER_BYTES = 16;
constexpr size_t LABEL_HEADER_BYTES = 8;
constexpr uint32_t IMAGE_MAGIC = 2051, LABEL_MAGIC = 2049;

uint32_t bigEndian(kj::ArrayPtr<const kj::byte> bytes, size_t at) {
  uint32_t number;
  memcpy(&number, bytes.begin() + at, sizeof(number));
  return __builtin_bswap32(number);
}

}  // namespace

ImageView IdxImages::image(size_t i) const {
  return {shape, Layout::PLANES, pixels.slice(i * shape.size(), (i + 1) * shape.size())};
}

IdxImages parseIdx(
    kj::StringPtr name, kj::ArrayPtr<const kj::byte> images, kj::ArrayPtr<const kj::byte> labels) {
  auto refuse = [&](kj::StringPtr why) { configs::fail(name, " ", why, ". Get the files again"); };
  if (images.size() < IMAGE_HEADER_BYTES || bigEndian(images, 0) != IMAGE_MAGIC) {
    refuse("do not begin as images in MNIST's format");
  }
  if (labels.size() < LABEL_HEADER_BYTES || bigEndian(labels, 0) != LABEL_MAGIC) {
    refuse("do not begin as labels in MNIST's format");
  }
  uint64_t count = bigEndian(images, 4);
  ImageShape shape = {1, bigEndian(images, 8), bigEndian(images, 12)};
  if (shape.size() == 0) refuse("have images without pixels");
  if (shape.size() > IMAGE_PIXELS_MAX ||
      images.size() != IMAGE_HEADER_BYTES + count * shape.size()) {
    refuse("do not have as many bytes as their header says");
  }
  if (bigEndian(labels, 4) != count || labels.size() != LABEL_HEADER_BYTES + count) {
    refuse("do not have one label per image");
  }
  return {shape, images.slice(IMAGE_HEADER_BYTES, images.size()),
      labels.slice(LABEL_HEADER_BYTES, labels.size())};
}

}  // namespace io

#include "io/images/crop_reader.h"

#include <kj/debug.h>

#include "io/images/pixels.h"

namespace io {

namespace {

constexpr uint VALUES = Resizer::VALUES;

// Returns the factor by which an image may shrink while it is decoded, if `crop` must have the size
// `to`. The resizer must still at least halve its sides, so that the result hardly differs: from
// Pillow's, by 0.5 grey levels in the mean of 200 photographs. Without that condition it was 1.0.
uint shrinkFor(Region crop, ImageShape to) {
  uint shrink = 1;
  while (
      shrink < 8 && crop.height >= 4 * shrink * to.height && crop.width >= 4 * shrink * to.width) {
    shrink *= 2;
  }
  return shrink;
}

// Returns the whole shrunk pixels that cover `size` pixels from `begin` on.
struct Shrunk {
  uint first, count;
  Extent extent;  // counted from `first`
};
Shrunk shrunk(uint begin, uint size, uint shrink) {
  uint first = begin / shrink;
  uint end = (begin + size + shrink - 1) / shrink;
  return {first, end - first, {double(begin) / shrink - first, double(size) / shrink}};
}

}  // namespace

void CropReader::apply(const Record& record, Augmentation augmentation, kj::ArrayPtr<float> out) {
  normalise(record, augmentation, out);
  augmenter.finish(augmentation, out);
}

void CropReader::normalise(
    const Record& record, const Augmentation& augmentation, kj::ArrayPtr<float> out) {
  if (canDecodeCrop(record, augmentation)) {
    auto& to = augmenter.shape;
    Region crop{uint(augmentation.top), uint(augmentation.left), to.height, to.width};
    uint y = 0;
    return decoder.decodeRegion(
        record.bytes, record.shape, 1, crop, [&](kj::ArrayPtr<const kj::byte> row) {
          augmenter.applyRow(row, y++, augmentation.mirror, out);
        });
  }
  if (!augmenter.resizes()) {
    return augmenter.apply(pixelsOf(record, decoder), augmentation, out);
  }
  resize(record, augmentation, [&](uint y, kj::ArrayPtr<const float> planes) {
    augmenter.applyRow(planes, y, augmentation.mirror, out);
  });
}

void CropReader::requireWhole(const Record& record) {
  if (record.encoding == Encoding::JPEG) decoder.decode(record.bytes, record.shape);
}

// Whether the crop keeps its size, and is inside the image of a JPEG file.
bool CropReader::canDecodeCrop(const Record& record, Augmentation augmentation) const {
  auto& to = augmenter.shape;
  bool isInside = augmentation.top >= 0 && augmentation.left >= 0 &&
                  augmentation.top + to.height <= record.shape.height &&
                  augmentation.left + to.width <= record.shape.width;
  return record.encoding == Encoding::JPEG && isInside && !augmenter.resizes() &&
         augmenter.meanImage.size() == 0;
}

void CropReader::cut(const Record& record, Augmentation augmentation, kj::ArrayPtr<kj::byte> out) {
  if (!augmenter.resizes()) {
    return augmenter.cut(pixelsOf(record, decoder), augmentation, out);
  }
  auto& shape = augmenter.shape;
  resize(record, augmentation, [&](uint y, kj::ArrayPtr<const float> planes) {
    for (uint c = 0; c < shape.channels; ++c) {
      auto to = out.begin() + (size_t(c) * shape.height + y) * shape.width;
      auto from = planes.begin() + size_t(c) * shape.width;
      for (uint x = 0; x < shape.width; ++x) to[x] = kj::byte(from[x] + 0.5f);
    }
  });
}

void CropReader::copy(const Record& record, kj::ArrayPtr<kj::byte> out) {
  toPlanes(pixelsOf(record, decoder), out);
}

void CropReader::resize(const Record& record, Augmentation augmentation,
    kj::FunctionParam<void(uint y, kj::ArrayPtr<const float> planes)> take) {
  auto& stored = record.shape;
  auto& to = augmenter.shape;
  Region crop{
      uint(augmentation.top), uint(augmentation.left), augmentation.height, augmentation.width};
  KJ_REQUIRE(augmentation.top >= 0 && augmentation.left >= 0 &&
                 crop.top + crop.height <= stored.height && crop.left + crop.width <= stored.width,
      augmentation.top, augmentation.left, crop.height, crop.width, sizeOf(stored));
  bool isGrey = stored.channels == 1;
  if (record.encoding == Encoding::JPEG) {
    uint shrink = shrinkFor(crop, to);
    auto rows = shrunk(crop.top, crop.height, shrink);
    auto columns = shrunk(crop.left, crop.width, shrink);
    resizer.begin(rows.count, columns.count, rows.extent, columns.extent, to.height, to.width);
    if (row.size() < columns.count * VALUES) {
      row = kj::heapArray<kj::byte>(columns.count * VALUES);
    }
    auto spread = row.slice(0, columns.count * VALUES);
    decoder.decodeRegion(record.bytes, stored, shrink,
        {rows.first, columns.first, rows.count, columns.count},
        [&](kj::ArrayPtr<const kj::byte> pixels) {
          if (!isGrey) return resizer.add(pixels, take);
          for (auto x: kj::indices(pixels)) spread[x * VALUES] = pixels[x];
          resizer.add(spread, take);
        });
    return;
  }
  KJ_REQUIRE(stored.channels <= VALUES, "too many channels to be resized", stored.channels);
  resizer.begin(crop.height, crop.width, {0, double(crop.height)}, {0, double(crop.width)},
      to.height, to.width);
  if (row.size() < crop.width * VALUES) row = kj::heapArray<kj::byte>(crop.width * VALUES);
  auto spread = row.slice(0, crop.width * VALUES);
  size_t plane = size_t(stored.height) * stored.width;
  for (uint y = crop.top; y < crop.top + crop.height; ++y) {
    for (uint c = 0; c < stored.channels; ++c) {
      auto from = record.bytes.begin() + c * plane + size_t(y) * stored.width + crop.left;
      for (uint x = 0; x < crop.width; ++x) spread[x * VALUES + c] = from[x];
    }
    resizer.add(spread, take);
  }
}

}  // namespace io

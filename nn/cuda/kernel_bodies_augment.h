// nn/cuda/kernel_bodies_augment.h: from stored images to the network's input.
#pragma once

#include "nn/cuda/packs.h"

namespace nn::cuda {

// The row or column of `size` that one inside or outside of the image is taken from.
HOST_DEVICE int32_t insideOf(int32_t at, int32_t size, bool reflects) {
  int32_t last = size - 1;
  if (at >= 0 && at <= last) return at;
  if (!reflects || last == 0) return at < 0 ? 0 : last;
  // There and back again.
  int32_t phase = (at < 0 ? -at : at) % (2 * last);
  return phase <= last ? phase : 2 * last - phase;
}

inline bool takesPacks(const Augment& k) {
  return movesInPacks(k.element, {k.to});
}
inline Grid gridOf(const Augment& k, uint32_t pack) {
  return gridOfPacks(k.to, pack);
}
// Threads beside each other have pixels beside each other, as for ImportPixels.
template <typename T, unsigned N, typename Block>
HOST_DEVICE void body(const Augment& k, Block& block) {
  uint32_t size = k.plane.height * k.plane.width;
  size_t storedSize = size_t(k.stored.height) * k.stored.width;
  eachPlace(block, k.to.width / N, k.to.pixels, [&](uint32_t pack, uint32_t pixel) {
    const RawRow& row = k.rows[pixel / size];
    float values[N] = {};
    auto image = reinterpret_cast<const uint8_t*>(row.image);
    if (image != nullptr) {
      uint32_t place = pixel % size, column = place % k.plane.width;
      int32_t y = row.top + int32_t(place / k.plane.width);
      int32_t x = row.left + int32_t(row.isMirrored != 0 ? k.plane.width - 1 - column : column);
      int32_t fromY = insideOf(y, int32_t(k.stored.height), k.reflects);
      int32_t fromX = insideOf(x, int32_t(k.stored.width), k.reflects);
      bool isGrey = k.hasGrey && (fromY != y || fromX != x);
      size_t at = size_t(fromY) * k.stored.width + fromX;
      for (unsigned i = 0; i < N; i++) {
        uint32_t channel = pack * N + i;
        if (channel >= k.to.channels) continue;
        size_t from = channel * storedSize + at;
        float pixelValue = isGrey ? k.grey : float(image[from]);
        float mean = k.meanImage != nullptr ? k.meanImage[from] : k.means[channel];
        values[i] = (pixelValue - mean) * k.factors[channel];
      }
    }
    write<T>(k.to, pixel, pack * N, values, false);
  });
}

}  // namespace nn::cuda

// nn/cuda/kernel_bodies_copies.h: kernels that convert between the arrays of the host and those of
// the device.
#pragma once

#include "nn/cuda/packs.h"

namespace nn::cuda {

// Neighbouring threads take neighbouring pixels, so that they read without gaps. Images have few
// channels.
template <typename T, unsigned N, typename Block>
HOST_DEVICE void body(const ImportPixels& k, Block& block) {
  uint32_t size = k.plane.height * k.plane.width;
  eachPlace(block, k.to.width / N, k.to.pixels, [&](uint32_t pack, uint32_t pixel) {
    uint32_t image = pixel / size, place = pixel % size;
    float values[N];
    for (unsigned i = 0; i < N; i++) {
      uint32_t channel = pack * N + i;
      bool isThere = channel < k.to.channels;
      values[i] = isThere ? k.from[(size_t(image) * k.to.channels + channel) * size + place] : 0.0f;
    }
    write<T>(k.to, pixel, pack * N, values, false);
  });
}

// Returns which row or column of the stored image to read for number `at`, which may lie outside of
// the image. The image has `size` rows or columns.
HOST_DEVICE int32_t sourceOf(int32_t at, int32_t size, bool reflects) {
  int32_t last = size - 1;
  if (at >= 0 && at <= last) return at;
  if (!reflects || last == 0) return at < 0 ? 0 : last;
  // Reflection repeats with twice the period.
  int32_t phase = (at < 0 ? -at : at) % (2 * last);
  return phase <= last ? phase : 2 * last - phase;
}

// Neighbouring threads take neighbouring pixels, as for ImportPixels.
template <typename T, unsigned N, typename Block>
HOST_DEVICE void body(const Augment& k, Block& block) {
  const RawImages& stored = k.images;
  uint32_t size = k.plane.height * k.plane.width;
  size_t storedSize = size_t(stored.height) * stored.width;
  eachPlace(block, k.to.width / N, k.to.pixels, [&](uint32_t pack, uint32_t pixel) {
    const RawRow& row = k.rows[pixel / size];
    float values[N] = {};
    auto image = reinterpret_cast<const uint8_t*>(row.image);
    if (image != nullptr) {
      uint32_t place = pixel % size, column = place % k.plane.width;
      int32_t y = row.top + int32_t(place / k.plane.width);
      int32_t x = row.left + int32_t(row.isMirrored != 0 ? k.plane.width - 1 - column : column);
      int32_t fromY = sourceOf(y, int32_t(stored.height), stored.reflects);
      int32_t fromX = sourceOf(x, int32_t(stored.width), stored.reflects);
      bool isGrey = stored.hasGrey && (fromY != y || fromX != x);
      size_t at = size_t(fromY) * stored.width + fromX;
      for (unsigned i = 0; i < N; i++) {
        uint32_t channel = pack * N + i;
        if (channel >= k.to.channels) continue;
        size_t from = channel * storedSize + at;
        float pixelValue = isGrey ? stored.grey : float(image[from]);
        float mean = stored.meanImage != nullptr ? stored.meanImage[from] : stored.means[channel];
        values[i] = (pixelValue - mean) * stored.factors[channel];
      }
    }
    write<T>(k.to, pixel, pack * N, values, false);
  });
}

// Returns the filters as O'·plane pixels of I' channels.
HOST_DEVICE View viewOf(const Filters& filters, void* data) {
  return {data, filters.paddedOutputs * filters.plane, filters.inputs, filters.paddedInputs,
      filters.paddedInputs};
}

inline bool takesPacks(const ImportFilters& k) {
  return movesInPacks(k.element, std::array{viewOf(k.filters, k.to)});
}
inline Grid gridOf(const ImportFilters& k, uint32_t pack) {
  return gridOfPacks(viewOf(k.filters, k.to), pack);
}
// A thread reads with gaps. Neighbouring threads soon read the values in the gaps from the cache.
template <typename T, unsigned N, typename Block>
HOST_DEVICE void body(const ImportFilters& k, Block& block) {
  const Filters& f = k.filters;
  eachPack<T, N>(
      block, viewOf(f, k.to), false, [&](uint32_t row, uint32_t channel, float(&values)[N]) {
        uint32_t output = row / f.plane, place = row % f.plane;
        for (unsigned i = 0; i < N; i++) {
          uint32_t input = channel + i;
          bool isThere = output < f.outputs && input < f.inputs;
          values[i] =
              isThere ? k.from[(size_t(output) * f.inputs + input) * f.plane + place] : 0.0f;
        }
      });
}

inline Grid gridOf(const ExportFilters& k, uint32_t) {
  return gridOfPlaces(uint64_t(k.filters.outputs) * k.filters.inputs * k.filters.plane);
}
template <typename T, unsigned N, typename Block>
HOST_DEVICE void body(const ExportFilters& k, Block& block) {
  const Filters& f = k.filters;
  const T* from = static_cast<const T*>(k.from);
  eachPlace(block, f.outputs * f.inputs, f.plane, [&](uint32_t row, uint32_t place) {
    uint32_t output = row / f.inputs, input = row % f.inputs;
    float value = load(from[(size_t(output) * f.plane + place) * f.paddedInputs + input]);
    k.to[size_t(row) * f.plane + place] = k.factor * value;
  });
}

inline Grid gridOf(const ExportRows& k, uint32_t) {
  return gridOfPlaces(uint64_t(k.from.pixels) * k.from.channels);
}
template <typename T, unsigned N, typename Block>
HOST_DEVICE void body(const ExportRows& k, Block& block) {
  uint32_t channels = k.from.channels;
  eachPlace(block, k.from.pixels, channels, [&](uint32_t row, uint32_t channel) {
    k.to[size_t(row) * channels + channel] = load(*placeIn<T>(k.from, row, channel));
  });
}

}  // namespace nn::cuda

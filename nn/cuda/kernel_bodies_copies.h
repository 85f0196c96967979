// nn/cuda/kernel_bodies_copies.h: between the host's arrays and the device's.
#pragma once

#include "nn/cuda/packs.h"

namespace nn::cuda {

inline bool takesPacks(const ImportPixels& k) {
  return movesInPacks(k.element, {k.to});
}
inline Grid gridOf(const ImportPixels& k, uint32_t pack) {
  return gridOfPacks(k.to, pack);
}
// Threads beside each other have pixels beside each other, so that they read without gaps; images
// have few channels.
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

// Rows O'·plane of I' values.
HOST_DEVICE View viewOf(const Filters& filters, void* data) {
  return {data, filters.paddedOutputs * filters.plane, filters.inputs, filters.paddedInputs,
      filters.paddedInputs};
}

inline bool takesPacks(const ImportFilters& k) {
  return movesInPacks(k.element, {viewOf(k.filters, k.to)});
}
inline Grid gridOf(const ImportFilters& k, uint32_t pack) {
  return gridOfPacks(viewOf(k.filters, k.to), pack);
}
// Reads with gaps; what lies in them a neighbour reads soon, out of the cache.
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

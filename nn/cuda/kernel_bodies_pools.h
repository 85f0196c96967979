// nn/cuda/kernel_bodies_pools.h: pools.
#pragma once

#include "nn/cuda/packs.h"

namespace nn::cuda {

// A pixel of a batch of images.
struct PixelAt {
  uint32_t image;
  uint32_t row, column;
};
HOST_DEVICE PixelAt pixelAt(const Plane& plane, uint32_t pixel) {
  uint32_t size = plane.height * plane.width;
  uint32_t image = pixel / size, place = pixel % size;
  return {image, place / plane.width, place % plane.width};
}

// Calls step(pixel of the input, place in the window) for each pixel in the window of an output,
// row by row.
template <typename Step>
HOST_DEVICE void eachOfWindow(const Windows& windows, uint32_t output, Step&& step) {
  PixelAt at = pixelAt(windows.out, output);
  uint32_t first = at.image * windows.in.height * windows.in.width;
  for (uint32_t u = 0; u < windows.kernel; u++) {
    // Above and left of the input, the subtraction wraps to a huge number, which is outside too.
    uint32_t row = at.row * windows.stride + u - windows.pad;
    if (row >= windows.in.height) continue;
    for (uint32_t v = 0; v < windows.kernel; v++) {
      uint32_t column = at.column * windows.stride + v - windows.pad;
      if (column >= windows.in.width) continue;
      step(first + row * windows.in.width + column, u * windows.kernel + v);
    }
  }
}

// The windows that cover a row or column of the input.
struct Cover {
  uint32_t begin, end;
};
HOST_DEVICE Cover coverOf(const Windows& windows, uint32_t place, uint32_t outputs) {
  uint32_t padded = place + windows.pad;
  uint32_t begin = padded < windows.kernel ? 0 : (padded - windows.kernel) / windows.stride + 1;
  uint32_t end = padded / windows.stride + 1;
  return {begin, end < outputs ? end : outputs};
}

// Calls step(pixel of the output, place in its window) for every window that covers a pixel of the
// input, row by row.
template <typename Step>
HOST_DEVICE void eachWindowOver(const Windows& windows, uint32_t input, Step&& step) {
  PixelAt at = pixelAt(windows.in, input);
  Cover rows = coverOf(windows, at.row, windows.out.height);
  Cover columns = coverOf(windows, at.column, windows.out.width);
  for (uint32_t i = rows.begin; i < rows.end; i++) {
    uint32_t u = at.row + windows.pad - i * windows.stride;
    for (uint32_t j = columns.begin; j < columns.end; j++) {
      uint32_t v = at.column + windows.pad - j * windows.stride;
      step((at.image * windows.out.height + i) * windows.out.width + j, u * windows.kernel + v);
    }
  }
}

// ---- max

// Whether places can be moved in packs. A row of places has one byte per channel.
inline bool movesPlaces(Element element, uint32_t channels, const uint8_t* places) {
  return places == nullptr || (isAligned(places) && channels % packOf(element) == 0);
}
template <unsigned N>
HOST_DEVICE Pack<uint8_t, N>* placesOf(
    const uint8_t* places, uint32_t channels, uint32_t output, uint32_t channel) {
  const uint8_t* at = places + size_t(output) * channels + channel;
  return reinterpret_cast<Pack<uint8_t, N>*>(const_cast<uint8_t*>(at));
}

inline bool takesPacks(const PoolMax& k) {
  return movesInPacks(k.element, k.views()) && movesPlaces(k.element, k.y.channels, k.places);
}
template <typename T, unsigned N, typename Block>
HOST_DEVICE void body(const PoolMax& k, Block& block) {
  eachPack<T, N>(block, k.y, false, [&](uint32_t output, uint32_t channel, float(&best)[N]) {
    uint32_t places[N] = {};
    for (float& value: best) value = 0;
    bool isFirst = true;
    eachOfWindow(k.windows, output, [&](uint32_t input, uint32_t place) {
      float x[N];
      read<T>(k.x, input, channel, x);
      for (unsigned i = 0; i < N; i++) {
        bool isBetter = isFirst || x[i] > best[i];
        best[i] = isBetter ? x[i] : best[i];
        places[i] = isBetter ? place : places[i];
      }
      isFirst = false;
    });
    if (k.places != nullptr && channel < k.y.channels) {
      Pack<uint8_t, N> bytes;
      for (unsigned i = 0; i < N; i++) bytes.values[i] = uint8_t(places[i]);
      *placesOf<N>(k.places, k.y.channels, output, channel) = bytes;
    }
  });
}

inline bool takesPacks(const PoolMaxBackward& k) {
  return movesInPacks(k.element, k.views()) && movesPlaces(k.element, k.dx.channels, k.places);
}
template <typename T, unsigned N, typename Block>
HOST_DEVICE void body(const PoolMaxBackward& k, Block& block) {
  eachPack<T, N>(block, k.dx, k.adds, [&](uint32_t input, uint32_t channel, float(&dx)[N]) {
    for (float& sum: dx) sum = 0;
    if (channel >= k.dx.channels) return;
    eachWindowOver(k.windows, input, [&](uint32_t output, uint32_t place) {
      Pack<uint8_t, N> places = *placesOf<N>(k.places, k.dx.channels, output, channel);
      float dy[N];
      read<T>(k.dy, output, channel, dy);
      for (unsigned i = 0; i < N; i++) dx[i] += places.values[i] == place ? dy[i] : 0;
    });
  });
}

// ---- average

template <typename T, unsigned N, typename Block>
HOST_DEVICE void body(const PoolAverage& k, Block& block) {
  float factor = 1.0f / float(k.windows.kernel * k.windows.kernel);
  eachPack<T, N>(block, k.y, false, [&](uint32_t output, uint32_t channel, float(&y)[N]) {
    for (float& sum: y) sum = 0;
    eachOfWindow(k.windows, output, [&](uint32_t input, uint32_t) {
      float x[N];
      read<T>(k.x, input, channel, x);
      for (unsigned i = 0; i < N; i++) y[i] += x[i];
    });
    for (float& sum: y) sum *= factor;
  });
}

template <typename T, unsigned N, typename Block>
HOST_DEVICE void body(const PoolAverageBackward& k, Block& block) {
  float factor = 1.0f / float(k.windows.kernel * k.windows.kernel);
  eachPack<T, N>(block, k.dx, k.adds, [&](uint32_t input, uint32_t channel, float(&dx)[N]) {
    for (float& sum: dx) sum = 0;
    eachWindowOver(k.windows, input, [&](uint32_t output, uint32_t) {
      float dy[N];
      read<T>(k.dy, output, channel, dy);
      for (unsigned i = 0; i < N; i++) dx[i] += dy[i];
    });
    for (float& sum: dx) sum *= factor;
  });
}

}  // namespace nn::cuda

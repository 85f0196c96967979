// nn/cuda/kernel_bodies_elements.h: element by element.
#pragma once

#include "nn/cuda/functions.h"
#include "nn/cuda/packs.h"

namespace nn::cuda {

inline bool takesPacks(const Activate& k) {
  return movesInPacks(k.element, {k.x, k.y});
}
inline Grid gridOf(const Activate& k, uint32_t pack) {
  return gridOfPacks(k.y, pack);
}
template <typename T, unsigned N, typename Block>
HOST_DEVICE void body(const Activate& k, Block& block) {
  eachPack<T, N>(block, k.y, false, [&](uint32_t pixel, uint32_t channel, float(&y)[N]) {
    read<T>(k.x, pixel, channel, y);
    if (k.bias != nullptr) {
      // One by one: in the flat array it stands anywhere.
      for (unsigned i = 0; i < N; i++) {
        if (channel + i < k.y.channels) y[i] += k.bias[channel + i];
      }
    }
    activate(k.function, y);
  });
}

inline bool takesPacks(const ActivateBackward& k) {
  return movesInPacks(k.element, {k.from, k.dy, k.dx});
}
inline Grid gridOf(const ActivateBackward& k, uint32_t pack) {
  return gridOfPacks(k.dx, pack);
}
template <typename T, unsigned N, typename Block>
HOST_DEVICE void body(const ActivateBackward& k, Block& block) {
  eachPack<T, N>(block, k.dx, k.adds, [&](uint32_t pixel, uint32_t channel, float(&g)[N]) {
    float from[N];
    read<T>(k.from, pixel, channel, from);
    read<T>(k.dy, pixel, channel, g);
    timesSlope(k.function, from, g);
  });
}

inline bool takesPacks(const ScaleBy& k) {
  return movesInPacks(k.element, {k.x, k.y});
}
inline Grid gridOf(const ScaleBy& k, uint32_t pack) {
  return gridOfPacks(k.y, pack);
}
template <typename T, unsigned N, typename Block>
HOST_DEVICE void body(const ScaleBy& k, Block& block) {
  eachPack<T, N>(block, k.y, k.adds, [&](uint32_t pixel, uint32_t channel, float(&y)[N]) {
    read<T>(k.x, pixel, channel, y);
    for (float& value: y) value *= k.factor;
  });
}

// nn::isDropped(), for the device too.
HOST_DEVICE bool takesAway(const DropoutMask& mask, uint32_t index) {
  uint32_t h = index ^ mask.first;
  h = (h ^ h >> 16) * 0x7feb352du;
  h = (h ^ h >> 15) + mask.second;
  h *= 0x846ca68bu;
  h ^= h >> 16;
  return h >> 8 < mask.threshold;
}

inline bool takesPacks(const DropOut& k) {
  return movesInPacks(k.element, {k.x, k.y});
}
inline Grid gridOf(const DropOut& k, uint32_t pack) {
  return gridOfPacks(k.y, pack);
}
template <typename T, unsigned N, typename Block>
HOST_DEVICE void body(const DropOut& k, Block& block) {
  uint32_t size = k.plane.height * k.plane.width;
  eachPack<T, N>(block, k.y, k.adds, [&](uint32_t pixel, uint32_t channel, float(&y)[N]) {
    read<T>(k.x, pixel, channel, y);
    const DropoutMask mask = k.masks[pixel / size];
    uint32_t place = pixel % size;
    for (unsigned i = 0; i < N; i++) {
      y[i] = takesAway(mask, (channel + i) * size + place) ? 0 : y[i] * mask.scale;
    }
  });
}

inline bool takesPacks(const AddUp& k) {
  return movesInPacks(k.element, {k.a, k.b, k.y});
}
inline Grid gridOf(const AddUp& k, uint32_t pack) {
  return gridOfPacks(k.y, pack);
}
template <typename T, unsigned N, typename Block>
HOST_DEVICE void body(const AddUp& k, Block& block) {
  eachPack<T, N>(block, k.y, false, [&](uint32_t pixel, uint32_t channel, float(&y)[N]) {
    float b[N];
    read<T>(k.a, pixel, channel, y);
    read<T>(k.b, pixel, channel, b);
    for (unsigned i = 0; i < N; i++) y[i] += b[i];
  });
}

}  // namespace nn::cuda

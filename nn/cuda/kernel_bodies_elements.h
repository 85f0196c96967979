// nn/cuda/kernel_bodies_elements.h: kernels that work element by element.
#pragma once

#include "nn/cuda/functions.h"
#include "nn/cuda/packs.h"

namespace nn::cuda {

template <typename T, unsigned N, typename Block>
HOST_DEVICE void body(const Activate& k, Block& block) {
  eachPack<T, N>(block, k.y, false, [&](uint32_t pixel, uint32_t channel, float(&y)[N]) {
    read<T>(k.x, pixel, channel, y);
    if (k.bias != nullptr) {
      // One by one, because its place in the flat array may be unaligned.
      for (unsigned i = 0; i < N; i++) {
        if (channel + i < k.y.channels) y[i] += k.bias[channel + i];
      }
    }
    activate(k.function, y);
  });
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

template <typename T, unsigned N, typename Block>
HOST_DEVICE void body(const ScaleBy& k, Block& block) {
  eachPack<T, N>(block, k.y, k.adds, [&](uint32_t pixel, uint32_t channel, float(&y)[N]) {
    read<T>(k.x, pixel, channel, y);
    for (float& value: y) value *= k.factor;
  });
}

template <typename T, unsigned N, typename Block>
HOST_DEVICE void body(const DropOut& k, Block& block) {
  uint32_t size = k.plane.height * k.plane.width;
  eachPack<T, N>(block, k.y, k.adds, [&](uint32_t pixel, uint32_t channel, float(&y)[N]) {
    read<T>(k.x, pixel, channel, y);
    const DropoutMask mask = k.masks[pixel / size];
    uint32_t place = pixel % size;
    for (unsigned i = 0; i < N; i++) {
      y[i] = isDropped(mask, (channel + i) * size + place) ? 0 : y[i] * mask.scale;
    }
  });
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

// nn/cuda/packs.h: how kernels go over pixels. A thread moves a *pack* at once: some neighbouring
// channels of a pixel.
#pragma once

#include <initializer_list>

#include "nn/cuda/block.h"
#include "nn/cuda/kernels.h"

namespace nn::cuda {

// ---- values

// N neighbouring channels of a pixel, which a thread reads or writes at once.
template <typename T, unsigned N>
struct alignas(N * sizeof(T)) Pack {
  T values[N];
};

template <typename T>
HOST_DEVICE T* placeIn(const View& view, uint32_t pixel, uint32_t channel) {
  return static_cast<T*>(view.data) + size_t(pixel) * view.stride + channel;
}

// Reads a pack of a pixel. A pack after the last channel of the tensor is not read, and gives
// zeros. A view may end there if it is narrower than the view that the kernel writes.
template <typename T, unsigned N>
HOST_DEVICE void read(const View& view, uint32_t pixel, uint32_t channel, float (&values)[N]) {
  Pack<T, N> pack = {};
  if (channel < view.channels) {
    pack = *reinterpret_cast<const Pack<T, N>*>(placeIn<T>(view, pixel, channel));
  }
  for (unsigned i = 0; i < N; i++) values[i] = load(pack.values[i]);
}

// Reads a pack of an array of floats, which has one value per channel. Values after the last
// channel become 0.
template <unsigned N>
HOST_DEVICE void read(const float* array, uint32_t channels, uint32_t channel, float (&values)[N]) {
  View view = {const_cast<float*>(array), 1, channels, channels, channels};
  constexpr unsigned PART = N < 4 ? N : 4;
  for (unsigned i = 0; i < N; i += PART) {
    float part[PART];
    read<float>(view, 0, channel + i, part);
    for (unsigned j = 0; j < PART; j++) values[i + j] = part[j];
  }
}

// Writes a pack, or adds it to the existing values if `adds`. Writes zeros after the last channel
// of the tensor. Writes nothing after the width of the view, which may be narrower than other views
// of the kernel.
template <typename T, unsigned N>
HOST_DEVICE void write(
    const View& view, uint32_t pixel, uint32_t channel, const float (&values)[N], bool adds) {
  if (channel >= view.width) return;
  float before[N] = {};
  if (adds) read<T>(view, pixel, channel, before);
  Pack<T, N> pack;
  for (unsigned i = 0; i < N; i++) {
    float value = adds ? before[i] + values[i] : values[i];
    store(pack.values[i], channel + i < view.channels ? value : 0);
  }
  *reinterpret_cast<Pack<T, N>*>(placeIn<T>(view, pixel, channel)) = pack;
}

// ---- loops

// Calls step(row, column) for each place of a table that all blocks share. Neighbouring threads
// have neighbouring columns.
template <typename Block, typename Step>
HOST_DEVICE void eachPlace(Block& block, uint32_t rows, uint32_t columns, Step&& step) {
  block.each([&](uint32_t thread) {
    uint32_t all = block.blocks() * block.threads();
    uint32_t first = block.index() * block.threads() + thread;
    uint32_t row = first / columns, column = first % columns;
    uint32_t moreRows = all / columns, moreColumns = all % columns;
    while (row < rows) {
      step(row, column);
      row += moreRows;
      column += moreColumns;
      if (column >= columns) {
        column -= columns;
        row++;
      }
    }
  });
}

// Calls make(pixel, channel, values) for each pack of y, and writes the values to y.
template <typename T, unsigned N, typename Block, typename Make>
HOST_DEVICE void eachPack(Block& block, const View& y, bool adds, Make&& make) {
  eachPlace(block, y.pixels, y.width / N, [&](uint32_t pixel, uint32_t pack) {
    float values[N];
    make(pixel, pack * N, values);
    write<T>(y, pixel, pack * N, values, adds);
  });
}

// ---- launches

constexpr uint32_t MOST_THREADS = 512;  // of a block of any kernel

// The grid for eachPlace(): enough blocks to fill a device. The results do not depend on the number
// of blocks.
inline Grid gridOfPlaces(uint64_t places) {
  constexpr uint32_t THREADS = 256, MOST_BLOCKS = 2048;
  uint64_t blocks = (places + THREADS - 1) / THREADS;
  return {blocks == 0 ? 1 : blocks < MOST_BLOCKS ? uint32_t(blocks) : MOST_BLOCKS, THREADS};
}

inline Grid gridOfPacks(const View& y, uint32_t pack) {
  return gridOfPlaces(uint64_t(y.pixels) * (y.width / pack));
}

inline bool isAligned(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % 16 == 0;
}

// Whether all of these views and arrays can be moved in packs of 16 bytes. A view without data can.
template <size_t COUNT>
bool movesInPacks(Element element, const std::array<View, COUNT>& views,
    std::initializer_list<const void*> arrays = {}) {
  uint32_t pack = packOf(element);
  bool fits = true;
  for (const View& view: views) {
    fits &= view.data == nullptr ||
            (isAligned(view.data) && view.width % pack == 0 && view.stride % pack == 0);
  }
  for (const void* array: arrays) fits &= isAligned(array);
  return fits;
}

// For kernels that have views(). Some of these kernels have a different takesPacks() or gridOf().
template <typename K>
requires requires(const K& k) {
  k.views();
}
bool takesPacks(const K& k) {
  return movesInPacks(k.element, k.views());
}
template <typename K>
requires requires(const K& k) {
  k.views();
}
Grid gridOf(const K& k, uint32_t pack) {
  return gridOfPacks(k.views()[0], pack);
}

}  // namespace nn::cuda

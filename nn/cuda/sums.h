// nn/cuda/sums.h: sums over all pixels of a batch, two per channel. The order of the additions
// depends on sizes alone.
#pragma once

#include "nn/cuda/packs.h"

namespace nn::cuda {

// ---- first launch: each block has a tile of channels and one of PARTIAL_ROWS parts of the pixels

constexpr uint32_t SUM_THREADS = MOST_THREADS;

// How the threads of a block are arranged: as `rows` pixels of `lanes` neighbouring packs each.
// Some threads may be left over.
struct SumTiles {
  uint32_t tiles, lanes, rows;
};
HOST_DEVICE SumTiles sumTilesOf(uint32_t packs) {
  constexpr uint32_t MOST_LANES = 32;
  uint32_t tiles = (packs + MOST_LANES - 1) / MOST_LANES;
  uint32_t lanes = (packs + tiles - 1) / tiles;
  return {tiles, lanes, SUM_THREADS / lanes};
}

inline Grid gridOfSums(uint32_t width, uint32_t pack) {
  return {sumTilesOf(width / pack).tiles * PARTIAL_ROWS, SUM_THREADS,
      SUM_THREADS * 2 * pack * uint32_t(sizeof(float))};
}

// Adds up the rows of every lane, in pairs whose distance halves from step to step. `sums` has
// `terms` floats per thread: first the first term of all threads, then the second one, and so on.
template <typename Block>
HOST_DEVICE void addRows(Block& block, const SumTiles& tiles, float* sums, uint32_t terms) {
  for (uint32_t left = tiles.rows; left > 1;) {
    uint32_t half = (left + 1) / 2;
    block.each([&](uint32_t thread) {
      if (thread / tiles.lanes + half >= left) return;
      for (uint32_t term = 0; term < terms; term++) {
        float* sum = sums + term * SUM_THREADS + thread;
        *sum += sum[half * tiles.lanes];
      }
    });
    left = half;
  }
}

// Calls add(state, pixel, channel, first, second) for every pack of `width` channels of every
// pixel, to add to the two sums of its channels. Makes state = prepare(channel) once per thread.
// Writes the sums of channels below `partialWidth` to `partial`.
template <unsigned N, typename Block, typename Prepare, typename Add>
HOST_DEVICE void sumPixels(Block& block, uint32_t pixels, uint32_t width, float* partial,
    uint32_t partialWidth, Prepare&& prepare, Add&& add) {
  SumTiles tiles = sumTilesOf(width / N);
  uint32_t part = block.index() / tiles.tiles, tile = block.index() % tiles.tiles;
  uint32_t size = (pixels + PARTIAL_ROWS - 1) / PARTIAL_ROWS;
  uint32_t begin = part * size < pixels ? part * size : pixels;
  uint32_t end = pixels - begin < size ? pixels : begin + size;
  if (size < tiles.rows) tiles.rows = size;
  auto channelOf = [&](uint32_t thread) { return (tile * tiles.lanes + thread % tiles.lanes) * N; };
  float* sums = block.template shared<float>();

  block.each([&](uint32_t thread) {
    uint32_t channel = channelOf(thread), row = thread / tiles.lanes;
    if (row >= tiles.rows) return;
    float first[N] = {}, second[N] = {};
    if (channel < width) {
      auto state = prepare(channel);
      for (uint32_t pixel = begin + row; pixel < end; pixel += tiles.rows) {
        add(state, pixel, channel, first, second);
      }
    }
    for (unsigned i = 0; i < N; i++) {
      sums[i * SUM_THREADS + thread] = first[i];
      sums[(N + i) * SUM_THREADS + thread] = second[i];
    }
  });
  addRows(block, tiles, sums, 2 * N);
  block.each([&](uint32_t thread) {
    uint32_t channel = channelOf(thread);
    if (thread >= tiles.lanes || channel >= partialWidth) return;
    float* to = partial + (size_t(part) * partialWidth + channel) * 2;
    for (unsigned i = 0; i < N; i++) {
      to[2 * i] = sums[i * SUM_THREADS + thread];
      to[2 * i + 1] = sums[(N + i) * SUM_THREADS + thread];
    }
  });
}

// ---- second launch: each block has some channels

constexpr uint32_t FINISH_THREADS = 256, FINISH_CHANNELS = 16;

inline Grid gridOfFinish(uint32_t width) {
  return {(width + FINISH_CHANNELS - 1) / FINISH_CHANNELS, FINISH_THREADS,
      FINISH_THREADS * uint32_t(sizeof(double))};
}

// Calls use(channel, first, second) with the sums of each channel below `width`.
template <typename Block, typename Use>
HOST_DEVICE void finishSums(Block& block, const float* partial, uint32_t width, Use&& use) {
  constexpr uint32_t COLUMNS = 2 * FINISH_CHANNELS;
  double* sums = block.template shared<double>();
  block.each([&](uint32_t thread) {
    uint32_t column = block.index() * COLUMNS + thread % COLUMNS;
    double sum = 0;
    if (column < 2 * width) {
      for (uint32_t row = thread / COLUMNS; row < PARTIAL_ROWS; row += FINISH_THREADS / COLUMNS) {
        sum += partial[size_t(row) * 2 * width + column];
      }
    }
    sums[thread] = sum;
  });
  block.each([&](uint32_t thread) {
    if (thread >= COLUMNS) return;
    for (uint32_t i = thread + COLUMNS; i < FINISH_THREADS; i += COLUMNS) sums[thread] += sums[i];
  });
  block.each([&](uint32_t thread) {
    uint32_t channel = block.index() * FINISH_CHANNELS + thread;
    if (thread < FINISH_CHANNELS && channel < width) {
      use(channel, sums[2 * thread], sums[2 * thread + 1]);
    }
  });
}

// ---- biases

inline bool takesPacks(const SumColumns& k) {
  return movesInPacks(k.element, std::array{k.dy});
}
inline Grid gridOf(const SumColumns& k, uint32_t pack) {
  return gridOfSums(k.dy.width, pack);
}
template <typename T, unsigned N, typename Block>
HOST_DEVICE void body(const SumColumns& k, Block& block) {
  struct Nothing {};
  sumPixels<N>(
      block, k.dy.pixels, k.dy.width, k.partial, k.dy.width, [](uint32_t) { return Nothing(); },
      [&](Nothing, uint32_t pixel, uint32_t channel, float(&first)[N], float(&)[N]) {
        float dy[N];
        read<T>(k.dy, pixel, channel, dy);
        for (unsigned i = 0; i < N; i++) first[i] += dy[i];
      });
}

inline Grid gridOf(const FinishColumns& k, uint32_t) {
  return gridOfFinish(k.width);
}
template <typename T, unsigned N, typename Block>
HOST_DEVICE void body(const FinishColumns& k, Block& block) {
  finishSums(block, k.partial, k.width, [&](uint32_t channel, double sum, double) {
    if (channel < k.channels) k.to[channel] = float(k.factor * sum);
  });
}

}  // namespace nn::cuda

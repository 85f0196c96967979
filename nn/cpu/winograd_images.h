// nn/cpu/winograd_images.h: the loops of nn/cpu/winograd.h between images and transformed tiles, as
// templates over a vector type and the type of values.
#pragma once

#include "nn/cpu/winograd_sides.h"

namespace nn::cpu {

// `S` loads values of type `E` as vectors of floats, and stores vectors of floats as `E`.
template <typename S, typename E, size_t window>
struct WinogradImageLoops: WinogradSides<S, window> {
  using Sides = WinogradSides<S, window>;
  using V = typename S::Vector;
  static constexpr size_t B = S::WIDTH, SIDE = Sides::SIDE, SLOTS = SIDE * SIDE + 1;
  static constexpr size_t STRIDE = B / 2 * B;  // of a tile's points
  static constexpr size_t BLOCK_STRIDE = SLOTS * STRIDE;

  alignas(64) static constexpr E ZEROS[SIDE * B] = {};

  // Rows and columns of an image, from a place that may be outside of it. Outside, 0 is read.
  template <size_t rowCount, size_t columnCount>
  struct Patch {
    const E* rows[rowCount];
    size_t strides[rowCount];  // between blocks: none for zeros
    typename S::Mask isInside[columnCount];

    Patch(const E* x, unsigned height, unsigned width, const Tile& tile) {
      for (size_t i = 0; i < rowCount; i++) {
        ptrdiff_t row = tile.row + ptrdiff_t(i);
        bool isInside = row >= 0 && row < ptrdiff_t(height);
        rows[i] = isInside ? x + (row * ptrdiff_t(width) + tile.column) * ptrdiff_t(B) : ZEROS;
        strides[i] = isInside ? size_t(height) * width * B : 0;
      }
      for (size_t j = 0; j < columnCount; j++) {
        ptrdiff_t column = tile.column + ptrdiff_t(j);
        isInside[j] = S::mask(column >= 0 && column < ptrdiff_t(width));
      }
    }
    V at(size_t row, size_t column) const {
      return S::loadIf(isInside[column], rows[row] + column * B);
    }
    void advance() {
      for (size_t i = 0; i < rowCount; i++) rows[i] += strides[i];
    }
    // Prefetches the next block's pixels, which may be only in the last-level cache.
    void prefetchNext() const {
#pragma GCC unroll 8
      for (size_t i = 0; i < rowCount; i++) {
#pragma GCC unroll 8
        for (size_t j = 0; j < columnCount; j++) __builtin_prefetch(rows[i] + strides[i] + j * B);
      }
    }
  };

  // For tiles of R × C outputs.
  template <size_t R, size_t C>
  static void inputAs(
      const void* x, unsigned height, unsigned width, const Tile& tile, size_t blocks, float* v) {
    Patch<R + window - 1, C + window - 1> patch(static_cast<const E*>(x), height, width, tile);
    for (size_t c = 0; c < blocks; c++, v += BLOCK_STRIDE, patch.advance()) {
      patch.prefetchNext();
      auto at = [&](size_t i, size_t j) INLINE { return patch.at(i, j); };
      auto put = [&](size_t i, size_t j, V t) INLINE { S::store(v + (i * SIDE + j) * STRIDE, t); };
      using Rows = typename Sides::template Input<R + window - 1>;
      Sides::template transform<Rows, typename Sides::template Input<C + window - 1>>(at, put);
    }
  }

  static void transformInput(
      const void* x, unsigned height, unsigned width, const Tile& tile, size_t blocks, float* v) {
    auto run = tile.rows == 4 ? (tile.columns == 4 ? inputAs<4, 4> : inputAs<4, 3>)
                              : (tile.columns == 4 ? inputAs<3, 4> : inputAs<3, 3>);
    run(x, height, width, tile, blocks, v);
  }

  template <size_t R, size_t C>
  static void gradientAs(const void* dy, unsigned height, unsigned width, const Tile& tile,
      size_t blocks, float* m, float* sums) {
    Patch<R, C> patch(static_cast<const E*>(dy), height, width, tile);
    for (size_t k = 0; k < blocks; k++, m += BLOCK_STRIDE, patch.advance()) {
      patch.prefetchNext();
      auto at = [&](size_t i, size_t j) INLINE { return patch.at(i, j); };
      auto put = [&](size_t i, size_t j, V t) INLINE { S::store(m + (i * SIDE + j) * STRIDE, t); };
      using Rows = typename Sides::template Gradient<R + window - 1>;
      Sides::template transform<Rows, typename Sides::template Gradient<C + window - 1>>(at, put);
      if (sums == nullptr) continue;
      V sum = S::load(sums + k * B);
      for (size_t i = 0; i < R; i++) {
        for (size_t j = 0; j < C; j++) sum = S::add(sum, patch.at(i, j));
      }
      S::store(sums + k * B, sum);
    }
  }

  static void transformGradient(const void* dy, unsigned height, unsigned width, const Tile& tile,
      size_t blocks, float* m, float* sums) {
    auto run = tile.rows == 4 ? (tile.columns == 4 ? gradientAs<4, 4> : gradientAs<4, 3>)
                              : (tile.columns == 4 ? gradientAs<3, 4> : gradientAs<3, 3>);
    run(dy, height, width, tile, blocks, m, sums);
  }

  template <size_t R, size_t C>
  static void inputBackAs(
      const float* v, const Tile& tile, size_t blocks, void* dx, unsigned height, unsigned width) {
    constexpr size_t ROWS = R + window - 1, COLUMNS = C + window - 1;
    // The part of the patch that is inside the image.
    auto first = [](ptrdiff_t origin) { return origin < 0 ? -origin : 0; };
    auto last = [](ptrdiff_t origin, ptrdiff_t count, ptrdiff_t side) {
      return origin + count > side ? side - origin : count;
    };
    ptrdiff_t rowBegin = first(tile.row), rowEnd = last(tile.row, ROWS, height);
    ptrdiff_t columnBegin = first(tile.column), columnEnd = last(tile.column, COLUMNS, width);
    E* to = static_cast<E*>(dx) + (ptrdiff_t(tile.row) * width + tile.column) * ptrdiff_t(B);
    for (size_t c = 0; c < blocks; c++, v += BLOCK_STRIDE, to += size_t(height) * width * B) {
      alignas(64) float patch[ROWS][COLUMNS][B];
      auto at = [&](size_t i, size_t j) INLINE { return S::load(v + (i * SIDE + j) * STRIDE); };
      auto keep = [&](size_t i, size_t j, V t) INLINE { S::store(patch[i][j], t); };
      using Rows = typename Sides::template InputBack<ROWS>;
      Sides::template transform<Rows, typename Sides::template InputBack<COLUMNS>>(at, keep);
      for (ptrdiff_t i = rowBegin; i < rowEnd; i++) {
        for (ptrdiff_t j = columnBegin; j < columnEnd; j++) {
          put<Write::ADD>(to + (i * ptrdiff_t(width) + j) * ptrdiff_t(B), S::load(patch[i][j]));
        }
      }
    }
  }

  static void transformInputBack(
      const float* v, const Tile& tile, size_t blocks, void* dx, unsigned height, unsigned width) {
    auto run = tile.rows == 4 ? (tile.columns == 4 ? inputBackAs<4, 4> : inputBackAs<4, 3>)
                              : (tile.columns == 4 ? inputBackAs<3, 4> : inputBackAs<3, 3>);
    run(v, tile, blocks, dx, height, width);
  }

  template <Write write>
  static void put(E* to, V value) {
    S::store(to, write == Write::ADD ? S::add(S::load(to), value) : value);
  }

  // Writes one block of channels of a tile whose outputs all lie inside the image.
  template <size_t R, size_t C, Write write>
  static void wholeBlock(const float* m, V bias, E* y, size_t rowStride) {
    auto at = [&](size_t i, size_t j) INLINE { return S::load(m + (i * SIDE + j) * STRIDE); };
    auto put = [&](size_t i, size_t j, V t) INLINE {
      WinogradImageLoops::put<write>(y + i * rowStride + j * B, S::add(t, bias));
    };
    using Rows = typename Sides::template Output<R + window - 1>;
    Sides::template transform<Rows, typename Sides::template Output<C + window - 1>>(at, put);
  }

  // Writes one block of channels of a tile that reaches over the edge: only the outputs inside the
  // image.
  template <size_t R, size_t C, Write write>
  static void clippedBlock(
      const float* m, V bias, E* y, size_t rowStride, size_t rowEnd, size_t columnEnd) {
    float whole[R][C][B];
    auto at = [&](size_t i, size_t j) INLINE { return S::load(m + (i * SIDE + j) * STRIDE); };
    auto keep = [&](size_t i, size_t j, V t) INLINE { S::store(whole[i][j], S::add(t, bias)); };
    using Rows = typename Sides::template Output<R + window - 1>;
    Sides::template transform<Rows, typename Sides::template Output<C + window - 1>>(at, keep);
    for (size_t i = 0; i < R && i < rowEnd; i++) {
      for (size_t j = 0; j < C && j < columnEnd; j++) {
        put<write>(y + i * rowStride + j * B, S::load(whole[i][j]));
      }
    }
  }

  template <size_t R, size_t C, Write write>
  static void outputAs(const float* m, const Tile& tile, size_t blocks, const float* bias, void* y,
      unsigned height, unsigned width) {
    size_t rowEnd = height - tile.row, columnEnd = width - tile.column;
    bool isWhole = rowEnd >= R && columnEnd >= C;
    size_t plane = size_t(height) * width * B;
    E* to = static_cast<E*>(y) + (size_t(tile.row) * width + tile.column) * B;
    for (size_t k = 0; k < blocks; k++, m += BLOCK_STRIDE, to += plane) {
      V shift = bias == nullptr ? S::zero() : S::load(bias + k * B);
      if (!isWhole) {
        clippedBlock<R, C, write>(m, shift, to, width * B, rowEnd, columnEnd);
        continue;
      }
      for (size_t i = 0; i < R; i++) {
        for (size_t j = 0; j < C; j++) {
          __builtin_prefetch(to + plane + (i * width + j) * B, 1);
        }
      }
      wholeBlock<R, C, write>(m, shift, to, width * B);
    }
  }

  template <Write write>
  static auto outputOf(const Tile& tile) {
    return tile.rows == 4 ? (tile.columns == 4 ? outputAs<4, 4, write> : outputAs<4, 3, write>)
                          : (tile.columns == 4 ? outputAs<3, 4, write> : outputAs<3, 3, write>);
  }

  static void transformOutput(const float* m, const Tile& tile, size_t blocks, const float* bias,
      Write write, void* y, unsigned height, unsigned width) {
    auto run = write == Write::ADD ? outputOf<Write::ADD>(tile) : outputOf<Write::SET>(tile);
    run(m, tile, blocks, bias, y, height, width);
  }

  static constexpr WinogradImages TABLE = {
      .transformInput = transformInput,
      .transformInputBack = transformInputBack,
      .transformGradient = transformGradient,
      .transformOutput = transformOutput,
  };
};

}  // namespace nn::cpu

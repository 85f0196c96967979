// nn/cpu/amx_product.h: y = x * w on tiles: AmxLoops::multiply().
#pragma once

#include "nn/cpu/amx_tiles.h"

namespace nn::cpu {
namespace {

template <typename T>
struct AmxProductLoops {
  // Writes the sums of a pair's 32 rows and 32 channels, a few rows at a time, so that this happens
  // while the tiles of the next pair are multiplied. Tile 2·j + h has channels 16·j … and the rows
  // of the pair's tile h.
  template <size_t tiles>
  class Writer {
  public:
    Writer(const AmxProduct& product, size_t block): product(product) {
      for (size_t j = 0; product.bias != nullptr && j < tiles; j++) {
        bias[j] = _mm512_loadu_ps(product.bias + (2 * block + j) * AMX_SIDE);
      }
      plane = block * product.outStride;
    }

    void begin(const float* sums, const AmxPair& pair) {
      from = sums;
      at[0] = (plane + pair.first) * AMX_TILE;
      at[1] = (plane + pair.second) * AMX_TILE;
      next = 0;
      last = pair.first == pair.second ? AMX_SIDE : AMX_ROWS;
    }

    void write(size_t rows) {
      size_t end = next + rows < last ? next + rows : last;
      if (product.outIsFloats) {
        for (; next < end; next++) writeFloats(static_cast<float*>(product.out) + place());
      } else {
        for (; next < end; next++) writeRounded(static_cast<Bfloat16*>(product.out) + place());
      }
    }
    void finish() { write(AMX_ROWS); }

  private:
    const AmxProduct& product;
    __m512 bias[2] = {};
    size_t plane;
    const float* from = nullptr;
    size_t at[2] = {};
    size_t next = 0, last = 0;  // rows

    size_t place() const { return at[next / AMX_SIDE] + next % AMX_SIDE * AMX_CHANNELS; }

    __m512 sum(size_t j) const {
      if (j >= tiles) return bias[j];
      const float* tile = from + (2 * j + next / AMX_SIDE) * AMX_SUMS;
      return _mm512_add_ps(_mm512_load_ps(tile + next % AMX_SIDE * AMX_SIDE), bias[j]);
    }

    void writeFloats(float* row) const {
      for (size_t j = 0; j < 2; j++) {
        float* to = row + j * AMX_SIDE;
        __m512 value = sum(j);
        if (product.write == Write::ADD) value = _mm512_add_ps(value, _mm512_loadu_ps(to));
        _mm512_storeu_ps(to, value);
      }
    }

    void writeRounded(Bfloat16* to) const {
      __m512 low = sum(0), high = sum(1);
      if (product.write == Write::ADD) {
        low = _mm512_add_ps(low, widened(to));
        high = _mm512_add_ps(high, widened(to + AMX_SIDE));
      }
      _mm512_storeu_si512(to, __m512i(_mm512_cvtne2ps_pbh(high, low)));
    }

    static __m512 widened(const Bfloat16* p) {
      __m512i words = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p));
      return _mm512_castsi512_ps(_mm512_slli_epi32(words, 16));
    }
  };

  // The products of two tiles of images with one or two tiles of weights.
  template <size_t tiles, bool streams>
  static void multiplyBlock(
      const Bfloat16* first, const Bfloat16* second, const Bfloat16* b, size_t nextTile) {
    auto loadWeights = [](auto tile, const Bfloat16* p) {
      if constexpr (streams) {
        T::template stream<tile.value>(p);
      } else {
        T::template load<tile.value>(p);
      }
    };
    loadWeights(Number<6>(), b);
    T::template stream<4>(first);
    T::template multiply<0, 4, 6>();
    T::template stream<5>(second);
    T::template multiply<1, 5, 6>();
    if constexpr (tiles == 2) {
      loadWeights(Number<7>(), b + nextTile);
      T::template multiply<2, 4, 7>();
      T::template multiply<3, 5, 7>();
    }
  }

  template <size_t tiles, bool streams>
  static void multiplyColumn(const AmxProduct& p, size_t block, size_t from, size_t to) {
    alignas(64) float sums[2][4 * AMX_SUMS];
    size_t tileWeights = p.taps * p.inBlocks * AMX_TILE;
    const Bfloat16* weights = p.weights + 2 * block * tileWeights;
    Writer<tiles> writer(p, block);
    for (size_t i = from; i < to; i++) {
      T::template zero<0>();
      T::template zero<1>();
      if constexpr (tiles == 2) {
        T::template zero<2>();
        T::template zero<3>();
      }
      auto& pair = p.pairs[i];
      uint32_t end = p.pairs[i + 1].sources;
      size_t steps = (end - pair.sources) * p.inBlocks;
      // Whole quarters of a tile, so that all rows are written before the last products.
      size_t rows = steps == 0 ? AMX_ROWS : ((AMX_ROWS - 1) / steps + 4) & ~size_t(3);
      for (uint32_t s = pair.sources; s < end; s++) {
        const Bfloat16* first = p.in + p.sources[s].first * AMX_TILE;
        const Bfloat16* second = p.in + p.sources[s].second * AMX_TILE;
        const Bfloat16* b = weights + p.sources[s].tap * p.inBlocks * AMX_TILE;
        for (size_t c = 0; c < p.inBlocks; c++) {
          multiplyBlock<tiles, streams>(first, second, b, tileWeights);
          writer.write(rows);
          first += p.inStride * AMX_TILE;
          second += p.inStride * AMX_TILE;
          b += AMX_TILE;
        }
      }
      writer.finish();
      float* sum = sums[i % 2];
      T::template store<0>(sum);
      T::template store<1>(sum + AMX_SUMS);
      if constexpr (tiles == 2) {
        T::template store<2>(sum + 2 * AMX_SUMS);
        T::template store<3>(sum + 3 * AMX_SUMS);
      }
      writer.begin(sum, pair);
    }
    writer.finish();
  }

  static void multiply(const AmxProduct& p, size_t begin, size_t end) {
    // The weights of two tiles of outputs stay in the first-level cache up to this many blocks.
    constexpr size_t CACHED_BLOCKS = 18;
    bool streams = p.taps * p.inBlocks > CACHED_BLOCKS;
    T::begin();
    for (size_t block = 0; 2 * block < p.outTiles; block++) {
      bool isWhole = 2 * block + 1 < p.outTiles;
      auto column = isWhole   ? streams ? multiplyColumn<2, true> : multiplyColumn<2, false>
                      : streams ? multiplyColumn<1, true>
                              : multiplyColumn<1, false>;
      column(p, block, begin, end);
    }
    T::end();
  }
};

}  // namespace
}  // namespace nn::cpu

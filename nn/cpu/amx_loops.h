// nn/cpu/amx_loops.h: the loops of nn/cpu/amx.h as templates over tiles.
#pragma once

#include "nn/cpu/amx_tiles.h"

namespace nn::cpu {
namespace {

// The low or the high 16 of the 32 channels of two images, image by image in pairs: 16 channels × 2
// images.
inline __m512i pairImages(__m512i first, __m512i second, size_t half) {
  alignas(64) static const uint16_t PAIRS[32] = {0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7,
      39, 8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
  __m512i order = _mm512_add_epi16(_mm512_load_si512(PAIRS), _mm512_set1_epi16(short(16 * half)));
  return _mm512_permutex2var_epi16(first, order, second);
}

// Transposes within each of the four parts of a vector: part q of row c has words c of parts q of
// the four vectors.
inline void transposeParts(const __m512i (&t)[4], __m512i (&rows)[4]) {
  __m512i a = _mm512_unpacklo_epi32(t[0], t[1]), b = _mm512_unpackhi_epi32(t[0], t[1]);
  __m512i c = _mm512_unpacklo_epi32(t[2], t[3]), d = _mm512_unpackhi_epi32(t[2], t[3]);
  rows[0] = _mm512_unpacklo_epi64(a, c);
  rows[1] = _mm512_unpackhi_epi64(a, c);
  rows[2] = _mm512_unpacklo_epi64(b, d);
  rows[3] = _mm512_unpackhi_epi64(b, d);
}

// Of groups of IMAGES images.
template <typename T, size_t IMAGES>
struct AmxBody {
  // ---- y = x * w

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

  // ---- The gradient of the weights

  // The sum runs over the 32 rows of a tile: the images of one pixel, or of two.
  static constexpr size_t TOGETHER = AMX_ROWS / IMAGES;   // pixels
  static constexpr size_t PIXEL = IMAGES * AMX_CHANNELS;  // values of one, in a block of channels
  static constexpr size_t PART = IMAGES * AMX_SIDE;       // the same, in a tile

  // Asks for what lies some pixels later.
  static void prefetchLater(const void* p) {
    constexpr size_t DISTANCE_BYTES = 4096;
    _mm_prefetch(static_cast<const char*>(p) + DISTANCE_BYTES, _MM_HINT_T1);
  }

  // to[tile of channels] = pairs of images × 16 channels × 2 images, `plane` apart.
  static void interleave(
      const Bfloat16* pixel, size_t tiles, size_t blockStride, Bfloat16* to, size_t plane) {
    for (size_t t = 0; t < tiles; t++) {
      const Bfloat16* from = pixel + t / 2 * blockStride;
      for (size_t r = 0; r < IMAGES / 2; r++) {
        const Bfloat16* images = from + 2 * r * AMX_CHANNELS;
        if (t % 2 == 0) {
          prefetchLater(images);
          prefetchLater(images + AMX_CHANNELS);
        }
        __m512i a = _mm512_loadu_si512(images), b = _mm512_loadu_si512(images + AMX_CHANNELS);
        _mm512_store_si512(to + t * plane + r * 32, pairImages(a, b, t % 2));
      }
    }
  }

  // to[tile of channels] = tiles of 16 channels × the images of the pixels, `plane` apart. A pixel
  // that is null is 0.
  //
  // Takes 8 channels at a time. The four parts of a vector are loaded from four images, so that
  // nothing has to be moved from one part to another.
  static void transpose(const Bfloat16* const (&pixels)[TOGETHER], size_t tiles, size_t blockStride,
      Bfloat16* to, size_t plane) {
    constexpr size_t CHANNELS = 8;  // of a part
    alignas(64) static const Bfloat16 ZEROS[AMX_TILE] = {};
    for (size_t first = 0; first < tiles * AMX_SIDE; first += CHANNELS) {
      const Bfloat16* from[TOGETHER];
      for (size_t k = 0; k < TOGETHER; k++) {
        from[k] = TOGETHER > 1 && pixels[k] == nullptr
                      ? ZEROS
                      : pixels[k] + first / AMX_CHANNELS * blockStride + first % AMX_CHANNELS;
      }
      auto part = [&](size_t image) {
        return reinterpret_cast<const __m128i*>(
            from[image / IMAGES] + image % IMAGES * AMX_CHANNELS);
      };
      // Word 4·q + k of a row is a pair of images, from part q of these vectors.
      __m512i low[4], high[4];
#pragma GCC unroll 4
      for (size_t k = 0; k < 4; k++) {
        __m512i images[2];
#pragma GCC unroll 2
        for (size_t i = 0; i < 2; i++) {
          if (first % AMX_CHANNELS == 0) {
            for (size_t q = 0; q < 4; q++) prefetchLater(part(8 * q + 2 * k + i));
          }
          auto four = _mm512_castsi128_si512(_mm_loadu_si128(part(2 * k + i)));
          four = _mm512_inserti32x4(four, _mm_loadu_si128(part(8 + 2 * k + i)), 1);
          four = _mm512_inserti32x4(four, _mm_loadu_si128(part(16 + 2 * k + i)), 2);
          images[i] = _mm512_inserti32x4(four, _mm_loadu_si128(part(24 + 2 * k + i)), 3);
        }
        low[k] = _mm512_unpacklo_epi16(images[0], images[1]);
        high[k] = _mm512_unpackhi_epi16(images[0], images[1]);
      }
      __m512i rows[2][4];
      transposeParts(low, rows[0]);
      transposeParts(high, rows[1]);
      Bfloat16* tile = to + first / AMX_SIDE * plane + first % AMX_SIDE * AMX_ROWS;
#pragma GCC unroll 8
      for (size_t r = 0; r < CHANNELS; r++) {
        _mm512_store_si512(tile + r * AMX_ROWS, rows[r / 4][r % 4]);
      }
    }
  }

  // Rows of the input and of the output's gradient that are worked on together: transposed rows of
  // x in a ring, and interleaved rows of dy.
  //
  // Column kx of the window meets the columns of x that are kx - pad plus a multiple of the stride.
  // So a row of x has its columns by phases: phase p has columns i · stride + p - pad. A row of dy
  // has a pixel of zeros at both ends, if pixels come in twos.
  struct Rows {
    size_t rows;  // of the output
    size_t ring;  // of the input
    size_t phases, phaseTiles;
    size_t xRow, dyRow;      // values of a row, in a tile of channels
    size_t xPlane, dyPlane;  // from one tile to the next

    explicit Rows(const AmxWindow& w) {
      // In half of a second-level cache.
      constexpr size_t VALUES_MAX = 512 * 1024;
      phases = w.stride < w.kernelWidth ? w.stride : w.kernelWidth;
      size_t columns = (w.inWidth + w.stride - 1) / w.stride;
      phaseTiles = (columns + TOGETHER - 1) / TOGETHER;
      xRow = phases * phaseTiles * AMX_TILE;
      dyRow = (w.outWidth + 2 * (TOGETHER - 1)) * PART;
      rows = w.outHeight;
      while (true) {
        ring = (rows - 1) * w.stride + w.kernelHeight;
        if (ring > w.inHeight) ring = w.inHeight;
        xPlane = ring * xRow;
        dyPlane = rows * dyRow;
        if (rows == 1 || values(w) <= VALUES_MAX) return;
        rows = (rows + 1) / 2;
      }
    }
    size_t values(const AmxWindow& w) const { return w.inTiles * xPlane + w.outTiles * dyPlane; }

    // The first i of a phase whose column lies in the image.
    static size_t firstOf(const AmxWindow& w, size_t phase) {
      return (w.pad + w.stride - 1 - phase) / w.stride;
    }
  };

  static size_t scratchValues(const AmxWindow& w) {
    return Rows(w).values(w);
  }

  template <int number>
  struct Number {
    static constexpr int value = number;
  };
  // Calls f(Number<0>()), … f(Number<count - 1>()).
  template <int count, int from = 0, typename F>
  static void each(F&& f) {
    if constexpr (from < count) {
      f(Number<from>());
      each<count, from + 1>(f);
    }
  }

  // For `columns` neighbouring columns of the window, `ins` tiles of inputs and `outs` of outputs:
  // up to six tiles of sums. Goes through the tiles of the input. Each is loaded once, and meets
  // the pixels of dy whose windows have it in these columns.
  template <int columns, int ins, int outs>
  static void accumulateTiles(const AmxWindow& w, const Rows& rows, const Bfloat16* x,
      const Bfloat16* dy, size_t ky, size_t kx, size_t begin, size_t end, float* sums,
      size_t inStride, size_t outStride) {
    static_assert(columns * ins * outs <= 6);
    auto eachSum = [&](auto f) {
      each<columns>([&](auto k) {
        each<ins>([&](auto c) {
          each<outs>([&](auto o) {
            constexpr int tile =
                (decltype(k)::value * ins + decltype(c)::value) * outs + decltype(o)::value;
            f(Number<tile>(), sums + c.value * inStride + o.value * outStride + k.value * AMX_SUMS);
          });
        });
      });
    };
    eachSum([](auto tile, float* p) { T::template load<decltype(tile)::value>(p); });
    for (size_t y = begin; y < end; y++) {
      size_t padded = y * w.stride + ky;
      if (padded < w.pad || padded - w.pad >= w.inHeight) continue;
      const Bfloat16* dyRow = dy + (y - begin) * rows.dyRow;
      for (size_t phase = 0; phase < rows.phases; phase++) {
        bool meetsPhase[columns];
        size_t shifts[columns];
        for (size_t k = 0; k < columns; k++) {
          meetsPhase[k] = (kx + k) % w.stride == phase;
          shifts[k] = (kx + k - phase) / w.stride;
        }
        const Bfloat16* from =
            x + (padded - w.pad) % rows.ring * rows.xRow + phase * rows.phaseTiles * AMX_TILE;
        size_t i = Rows::firstOf(w, phase);
        for (; i * w.stride + phase < w.inWidth + w.pad; i += TOGETHER, from += AMX_TILE) {
          const Bfloat16* places[columns];
          bool meets[columns], meetsAny = false;
          for (size_t k = 0; k < columns; k++) {
            size_t place = i + TOGETHER - 1 - shifts[k];  // wraps around below 0
            meets[k] = meetsPhase[k] && place < w.outWidth + TOGETHER - 1;
            places[k] = meets[k] ? dyRow + place * PART : dyRow;
            meetsAny |= meets[k];
          }
          if (!meetsAny) continue;
          each<ins>([&](auto c) {
            T::template load<6>(from + c.value * rows.xPlane);
            each<columns>([&](auto k) {
              if (!meets[k.value]) return;
              each<outs>([&](auto o) {
                constexpr int tile =
                    (decltype(k)::value * ins + decltype(c)::value) * outs + decltype(o)::value;
                T::template load<7>(places[k.value] + o.value * rows.dyPlane);
                T::template multiply<tile, 6, 7>();
              });
            });
          });
        }
      }
    }
    eachSum([](auto tile, float* p) { T::template store<decltype(tile)::value>(p); });
  }

  // All tiles of one row of the window and `columns` columns of it, for some rows of dy.
  template <int columns, size_t insMax, size_t outsMax>
  static void accumulateColumns(const AmxWindow& w, const Rows& rows, const Bfloat16* x,
      const Bfloat16* dy, size_t ky, size_t kx, size_t begin, size_t end, float* sums) {
    size_t outStride = w.kernelWidth * AMX_SUMS, inStride = w.outTiles * outStride;
    float* corner = sums + ky * w.inTiles * inStride + kx * AMX_SUMS;
    auto withIns = [&](auto ins, size_t c) {
      for (size_t o = 0; o < w.outTiles;) {
        auto with = [&](auto outs) {
          accumulateTiles<columns, decltype(ins)::value, decltype(outs)::value>(w, rows,
              x + c * rows.xPlane, dy + o * rows.dyPlane, ky, kx, begin, end,
              corner + c * inStride + o * outStride, inStride, outStride);
          o += outs.value;
        };
        size_t left = w.outTiles - o;
        if (left >= outsMax) {
          with(Number<outsMax>());
        } else if (left >= 2) {
          with(Number < outsMax == 3 ? 2 : 1 > ());
        } else {
          with(Number<1>());
        }
      }
    };
    for (size_t c = 0; c < w.inTiles;) {
      if (w.inTiles - c >= insMax) {
        withIns(Number<insMax>(), c);
        c += insMax;
      } else {
        withIns(Number<1>(), c);
        ++c;
      }
    }
  }

  static void turnRow(
      const AmxWindow& w, const Rows& rows, const Bfloat16* row, size_t inBlock, Bfloat16* to) {
    for (size_t phase = 0; phase < rows.phases; phase++) {
      Bfloat16* tile = to + phase * rows.phaseTiles * AMX_TILE;
      size_t px = Rows::firstOf(w, phase) * w.stride + phase - w.pad;
      for (; px < w.inWidth; px += TOGETHER * w.stride, tile += AMX_TILE) {
        const Bfloat16* pixels[TOGETHER];
        for (size_t k = 0; k < TOGETHER; k++) {
          size_t at = px + k * w.stride;
          pixels[k] = at < w.inWidth ? row + at * PIXEL : nullptr;
        }
        transpose(pixels, w.inTiles, inBlock, tile, rows.xPlane);
      }
    }
  }

  static void pairRow(
      const AmxWindow& w, const Rows& rows, const Bfloat16* row, size_t outBlock, Bfloat16* to) {
    for (size_t t = 0; TOGETHER > 1 && t < w.outTiles; t++) {
      Bfloat16* tile = to + t * rows.dyPlane;
      memset(static_cast<void*>(tile), 0, PART * sizeof(Bfloat16));
      memset(static_cast<void*>(tile + rows.dyRow - PART), 0, PART * sizeof(Bfloat16));
    }
    to += (TOGETHER - 1) * PART;
    for (size_t px = 0; px < w.outWidth; px++) {
      interleave(row + px * PIXEL, w.outTiles, outBlock, to + px * PART, rows.dyPlane);
    }
  }

  static void accumulate(const AmxWindow& w, const Bfloat16* x, const Bfloat16* dy, size_t begin,
      size_t end, float* sums, Bfloat16* scratch) {
    Rows rows(w);
    Bfloat16* turned = scratch;
    Bfloat16* paired = scratch + w.inTiles * rows.xPlane;
    size_t inBlock = w.inHeight * w.inWidth * PIXEL, outBlock = w.outPixels * PIXEL;
    T::begin();
    size_t have = begin * w.stride < w.pad ? 0 : begin * w.stride - w.pad;  // rows of x
    for (size_t from = begin; from < end; from += rows.rows) {
      size_t to = from + rows.rows < end ? from + rows.rows : end;
      size_t reach = (to - 1) * w.stride + w.kernelHeight;
      size_t need = reach <= w.pad ? 0 : reach - w.pad;
      if (need > w.inHeight) need = w.inHeight;
      for (; have < need; have++) {
        turnRow(
            w, rows, x + have * w.inWidth * PIXEL, inBlock, turned + have % rows.ring * rows.xRow);
      }
      for (size_t y = from; y < to; y++) {
        pairRow(w, rows, dy + y * w.outWidth * PIXEL, outBlock, paired + (y - from) * rows.dyRow);
      }
      for (size_t ky = 0; ky < w.kernelHeight; ky++) {
        for (size_t kx = 0; kx < w.kernelWidth;) {
          size_t left = w.kernelWidth - kx;
          auto with = left >= 3   ? accumulateColumns<3, 1, 2>
                      : left == 2 ? accumulateColumns<2, 1, 3>
                                  : accumulateColumns<1, 2, 3>;
          with(w, rows, turned, paired, ky, kx, from, to, sums);
          kx += left >= 3 ? 3 : left;
        }
      }
    }
    T::end();
  }

  static void packWeights(const float* w, size_t outputs, size_t outStride, size_t inputs,
      size_t inStride, size_t taps, Bfloat16* packed) {
    size_t tiles = amxTiles(outputs), blocks = amxBlocks(inputs);
    for (size_t t = 0; t < tiles; t++) {
      size_t first = t * AMX_SIDE, count = outputs - first < AMX_SIDE ? outputs - first : AMX_SIDE;
      __mmask16 isOutput = __mmask16((1u << count) - 1);
      __m512i places = _mm512_mullo_epi32(lanes(), _mm512_set1_epi32(int(outStride)));
      for (size_t tap = 0; tap < taps; tap++) {
        for (size_t b = 0; b < blocks; b++) {
          for (size_t pair = 0; pair < AMX_SIDE; pair++, packed += 2 * AMX_SIDE) {
            __m512 value[2];
            for (size_t i = 0; i < 2; i++) {
              size_t c = b * AMX_CHANNELS + 2 * pair + i;
              const float* from = w + first * outStride + c * inStride + tap;
              value[i] = c < inputs ? _mm512_mask_i32gather_ps(_mm512_setzero_ps(), isOutput,
                                          places, from, sizeof(float))
                                    : _mm512_setzero_ps();
            }
            __m512i halves = __m512i(_mm512_cvtne2ps_pbh(value[1], value[0]));
            alignas(64) static const uint16_t PAIRS[32] = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21,
                6, 22, 7, 23, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
            _mm512_storeu_si512(packed, _mm512_permutexvar_epi16(_mm512_load_si512(PAIRS), halves));
          }
        }
      }
    }
  }

  static void unpackSums(const AmxWindow& w, const float* sums, size_t count, size_t stride,
      size_t outTile, size_t outputs, size_t inputs, float* weights) {
    size_t taps = w.kernelHeight * w.kernelWidth, first = outTile * AMX_SIDE;
    size_t used = outputs - first < AMX_SIDE ? outputs - first : AMX_SIDE;
    __mmask16 isOutput = __mmask16((1u << used) - 1);
    __m512i places = _mm512_mullo_epi32(lanes(), _mm512_set1_epi32(int(inputs * taps)));
    float* to = weights + first * inputs * taps;
    for (size_t c = 0; c < inputs; c++) {
      for (size_t ky = 0; ky < w.kernelHeight; ky++) {
        size_t tile = (ky * w.inTiles + c / AMX_SIDE) * w.outTiles + outTile;
        const float* row = sums + tile * w.kernelWidth * AMX_SUMS + c % AMX_SIDE * AMX_SIDE;
        for (size_t kx = 0; kx < w.kernelWidth; kx++, row += AMX_SUMS, to++) {
          __m512 sum = _mm512_loadu_ps(row);
          for (size_t i = 1; i < count; i++) {
            sum = _mm512_add_ps(sum, _mm512_loadu_ps(row + i * stride));
          }
          _mm512_mask_i32scatter_ps(to, isOutput, places, sum, sizeof(float));
        }
      }
    }
  }

  static __m512i lanes() {
    return _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  }

  static void addChannels(const Bfloat16* from, size_t blocks, size_t pixels, float* to) {
    for (size_t b = 0; b < blocks; b++, to += AMX_CHANNELS) {
      __m512 even = _mm512_setzero_ps(), odd = _mm512_setzero_ps();
      for (size_t i = 0; i < pixels * IMAGES; i++, from += AMX_CHANNELS) {
        __m512i pairs = _mm512_loadu_si512(from);
        even = _mm512_add_ps(even, _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)));
        __m512i upper = _mm512_and_si512(pairs, _mm512_set1_epi32(int(0xffff0000)));
        odd = _mm512_add_ps(odd, _mm512_castsi512_ps(upper));
      }
      alignas(64) float evens[16], odds[16];
      _mm512_store_ps(evens, even);
      _mm512_store_ps(odds, odd);
      for (size_t c = 0; c < 16; c++) {
        to[2 * c] += evens[c];
        to[2 * c + 1] += odds[c];
      }
    }
  }

  static void gatherPatch(const float* corner, const int32_t* offsets, const uint32_t* masks,
      size_t blocks, Bfloat16* to, size_t plane) {
    for (size_t b = 0; b < blocks; b++, offsets += AMX_CHANNELS, to += plane) {
      auto half = [&](size_t first) {
        __m512i places = _mm512_loadu_si512(offsets + first);
        auto mask = __mmask16(masks[b] >> first);
        return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, places, corner, sizeof(float));
      };
      _mm512_storeu_si512(to, __m512i(_mm512_cvtne2ps_pbh(half(AMX_SIDE), half(0))));
    }
  }

  static constexpr AmxLoops TABLE = {.images = IMAGES,
      .multiply = multiply,
      .accumulate = accumulate,
      .scratchValues = scratchValues,
      .packWeights = packWeights,
      .unpackSums = unpackSums,
      .addChannels = addChannels,
      .gatherPatch = gatherPatch};
};

}  // namespace
}  // namespace nn::cpu

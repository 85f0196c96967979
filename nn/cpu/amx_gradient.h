// nn/cpu/amx_gradient.h: the gradient of the weights on tiles: AmxLoops::accumulate().
#pragma once

#include "nn/cpu/amx_tiles.h"

namespace nn::cpu {
namespace {

// Returns the low (`half` 0) or the high 16 of the 32 channels of two images. The values of both
// images alternate: 16 channels × 2 images.
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

// The loops for groups of IMAGES images.
template <typename T, size_t IMAGES>
struct AmxGradientLoops {
  // The sum runs over the 32 rows of a tile: the images of one pixel, or of two.
  static constexpr size_t TOGETHER = AMX_ROWS / IMAGES;   // pixels
  static constexpr size_t PIXEL = IMAGES * AMX_CHANNELS;  // values of one, in a block of channels
  static constexpr size_t PART = IMAGES * AMX_SIDE;       // the same, in a tile

  // Prefetches the values some pixels ahead.
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

    // The first i of a phase whose column is inside the image.
    static size_t firstOf(const AmxWindow& w, size_t phase) {
      return (w.pad + w.stride - 1 - phase) / w.stride;
    }
  };

  static size_t scratchValues(const AmxWindow& w) {
    return Rows(w).values(w);
  }

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
};

}  // namespace
}  // namespace nn::cpu

// nn/cpu/amx_loops.h: the loops of nn/cpu/amx.h as templates over tiles.
#pragma once

#include <string.h>

#include "nn/cpu/amx_gradient.h"
#include "nn/cpu/amx_product.h"

namespace nn::cpu {
namespace {

// The loops for groups of IMAGES images.
template <typename T, size_t IMAGES>
struct AmxBody {
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

  static void toBfloats(const float* from, size_t count, Bfloat16* to, size_t toNext) {
    for (size_t i = 0; i < count; i += AMX_SIDE) {
      auto mask = __mmask16(count - i < AMX_SIDE ? (1u << (count - i)) - 1 : 0xffff);
      auto values = __m256i(_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, from + i)));
      _mm256_mask_storeu_epi16(to + i, mask, values);
      _mm_prefetch((const char*)(from + toNext + i), _MM_HINT_T0);
    }
  }

  // First makes bfloat16s of the rows that the window sees. Then copies their runs of values, which
  // takes less time than to gather each value.
  static void gatherRow(const AmxWindow& w, size_t inputs, const AmxRun* runs, size_t count,
      size_t lastBlock, const float* image, size_t y, Bfloat16* to, size_t distance,
      Bfloat16* scratch) {
    size_t width = amxPaddedWidth(w), rows = inputs * w.kernelHeight;
    memset(scratch, 0, rows * width * sizeof(Bfloat16));
    for (size_t i = 0; i < rows; i++) {
      size_t row = y * w.stride + i % w.kernelHeight - w.pad;  // huge if above the image
      if (row >= w.inHeight) continue;
      const float* from = image + (i / w.kernelHeight * w.inHeight + row) * w.inWidth;
      toBfloats(from, w.inWidth, scratch + i * width + w.pad, w.stride * w.inWidth);
    }
    for (size_t x = 0; x < w.outWidth; x++, to += distance, scratch += w.stride) {
      _mm512_storeu_si512(to + lastBlock, _mm512_setzero_si512());
      for (size_t i = 0; i < count; i++) {
        auto values = _mm_loadu_si128((const __m128i*)(scratch + runs[i].from));
        _mm_mask_storeu_epi16(to + runs[i].to, runs[i].mask, values);
      }
    }
  }

  static constexpr AmxLoops TABLE = {.images = IMAGES,
      .multiply = AmxProductLoops<T>::multiply,
      .accumulate = AmxGradientLoops<T, IMAGES>::accumulate,
      .scratchValues = AmxGradientLoops<T, IMAGES>::scratchValues,
      .packWeights = packWeights,
      .unpackSums = unpackSums,
      .addChannels = addChannels,
      .gatherRow = gatherRow};
};

}  // namespace
}  // namespace nn::cpu

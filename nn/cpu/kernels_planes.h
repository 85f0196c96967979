// nn/cpu/kernels_planes.h: the loops of nn/cpu/kernels.h over the windows of plain images.
#pragma once

#include "nn/cpu/kernels.h"

namespace nn::cpu {

// `S` is a vector type's operations, see vector_avx2.h. A vector holds the filters of a block.
template <typename S>
struct PlaneLoops {
  using V = typename S::Vector;
  static constexpr size_t B = S::WIDTH;
  // This many sums of vectors fit into the 16 registers of AVX2, together with three factors and
  // one value.
  static constexpr size_t SUMS = 12;
  static constexpr size_t BLOCKS_MAX = 3;
  // The gradients of a strip of rows stay in the first-level cache.
  static constexpr size_t STRIP_FLOATS = 4096;

  // Calls work.operator()<n>(first block) for groups of n blocks.
  template <typename Work>
  static void eachGroup(size_t blocks, Work&& work) {
    size_t first = 0;
    for (; first + 3 <= blocks; first += 3) work.template operator()<3>(first);
    if (first + 2 == blocks) work.template operator()<2>(first);
    if (first + 1 == blocks) work.template operator()<1>(first);
  }

  // PIXELS pixels of a row of the output, which has `plane` floats per block.
  template <size_t PIXELS, size_t BLOCKS>
  static void forwardPixels(const float* x, const Planes& planes, const float* weights,
      const float* bias, float* y, size_t plane) {
    V sums[PIXELS][BLOCKS];
#pragma GCC unroll 3
    for (size_t b = 0; b < BLOCKS; b++) {
      V start = bias == nullptr ? S::zero() : S::load(bias + b * B);
#pragma GCC unroll 12
      for (size_t p = 0; p < PIXELS; p++) sums[p][b] = start;
    }
    for (size_t t = 0; t < planes.taps; t++, weights += planes.blocks * B) {
      const float* from = x + planes.places[t];
      V factors[BLOCKS];
#pragma GCC unroll 3
      for (size_t b = 0; b < BLOCKS; b++) factors[b] = S::load(weights + b * B);
#pragma GCC unroll 12
      for (size_t p = 0; p < PIXELS; p++) {
        V value = S::set(from[p * planes.stride]);
#pragma GCC unroll 3
        for (size_t b = 0; b < BLOCKS; b++) sums[p][b] = S::fma(value, factors[b], sums[p][b]);
      }
    }
#pragma GCC unroll 3
    for (size_t b = 0; b < BLOCKS; b++) {
#pragma GCC unroll 12
      for (size_t p = 0; p < PIXELS; p++) S::store(y + b * plane + p * B, sums[p][b]);
    }
  }

  static void forward(
      const float* x, const Planes& planes, const float* weights, const float* bias, float* y) {
    size_t plane = planes.outHeight * planes.outWidth * B;
    eachGroup(planes.blocks, [&]<size_t BLOCKS>(size_t first) {
      constexpr size_t PIXELS = SUMS / BLOCKS;
      const float* factors = weights + first * B;
      const float* start = bias == nullptr ? nullptr : bias + first * B;
      for (size_t row = 0; row < planes.outHeight; row++) {
        const float* from = x + row * planes.stride * planes.rowFloats;
        float* to = y + first * plane + row * planes.outWidth * B;
        size_t column = 0;
        for (; column + PIXELS <= planes.outWidth; column += PIXELS) {
          forwardPixels<PIXELS, BLOCKS>(
              from + column * planes.stride, planes, factors, start, to + column * B, plane);
        }
        if (column == planes.outWidth) continue;
        if (planes.outWidth >= PIXELS) {
          // Computes some pixels again, to the same values.
          column = planes.outWidth - PIXELS;
          forwardPixels<PIXELS, BLOCKS>(
              from + column * planes.stride, planes, factors, start, to + column * B, plane);
          continue;
        }
        for (; column < planes.outWidth; column++) {
          forwardPixels<1, BLOCKS>(
              from + column * planes.stride, planes, factors, start, to + column * B, plane);
        }
      }
    });
  }

  // Adds TAPS taps' products of the rows `begin` to `end` - 1 of the output.
  template <size_t TAPS, size_t BLOCKS>
  static void accumulateTaps(const float* x, const float* dy, const Planes& planes,
      const uint32_t* places, size_t begin, size_t end, size_t plane, float* sums) {
    V own[TAPS][BLOCKS];
#pragma GCC unroll 12
    for (size_t t = 0; t < TAPS; t++) {
#pragma GCC unroll 3
      for (size_t b = 0; b < BLOCKS; b++) own[t][b] = S::zero();
    }
    size_t offsets[TAPS];
    for (size_t t = 0; t < TAPS; t++) offsets[t] = places[t];
    for (size_t row = begin; row < end; row++) {
      const float* from = x + row * planes.stride * planes.rowFloats;
      const float* gradient = dy + row * planes.outWidth * B;
      for (size_t n = planes.outWidth; n > 0; n--, from += planes.stride, gradient += B) {
        V factors[BLOCKS];
#pragma GCC unroll 3
        for (size_t b = 0; b < BLOCKS; b++) factors[b] = S::load(gradient + b * plane);
#pragma GCC unroll 12
        for (size_t t = 0; t < TAPS; t++) {
          V value = S::set(from[offsets[t]]);
#pragma GCC unroll 3
          for (size_t b = 0; b < BLOCKS; b++) own[t][b] = S::fma(value, factors[b], own[t][b]);
        }
      }
    }
#pragma GCC unroll 12
    for (size_t t = 0; t < TAPS; t++, sums += planes.blocks * B) {
#pragma GCC unroll 3
      for (size_t b = 0; b < BLOCKS; b++) {
        S::store(sums + b * B, S::add(S::load(sums + b * B), own[t][b]));
      }
    }
  }

  // Adds the gradients of a block's pixels.
  static void accumulateBias(const float* dy, size_t pixels, float* sums) {
    V even = S::zero(), odd = S::zero();
    for (size_t i = 0; i + 2 <= pixels; i += 2) {
      even = S::add(even, S::load(dy + i * B));
      odd = S::add(odd, S::load(dy + (i + 1) * B));
    }
    if (pixels % 2 != 0) even = S::add(even, S::load(dy + (pixels - 1) * B));
    S::store(sums, S::add(S::load(sums), S::add(even, odd)));
  }

  static void accumulate(
      const float* x, const float* dy, const Planes& planes, float* sums, float* biasSums) {
    size_t pixels = planes.outHeight * planes.outWidth, plane = pixels * B;
    for (size_t b = 0; biasSums != nullptr && b < planes.blocks; b++) {
      accumulateBias(dy + b * plane, pixels, biasSums + b * B);
    }
    eachGroup(planes.blocks, [&]<size_t BLOCKS>(size_t first) {
      constexpr size_t TAPS = SUMS / BLOCKS;
      size_t rowFloats = planes.outWidth * BLOCKS * B;
      size_t rows = rowFloats < STRIP_FLOATS ? STRIP_FLOATS / rowFloats : 1;
      const float* gradient = dy + first * plane;
      for (size_t begin = 0; begin < planes.outHeight; begin += rows) {
        size_t end = begin + rows < planes.outHeight ? begin + rows : planes.outHeight;
        float* to = sums + first * B;
        size_t t = 0;
        for (; t + TAPS <= planes.taps; t += TAPS, to += TAPS * planes.blocks * B) {
          accumulateTaps<TAPS, BLOCKS>(
              x, gradient, planes, planes.places + t, begin, end, plane, to);
        }
        for (; t < planes.taps; t++, to += planes.blocks * B) {
          accumulateTaps<1, BLOCKS>(x, gradient, planes, planes.places + t, begin, end, plane, to);
        }
      }
    });
  }
};

}  // namespace nn::cpu

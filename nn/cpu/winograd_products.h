// nn/cpu/winograd_products.h: the loops of nn/cpu/winograd.h over transformed tiles and weights, as
// templates over a vector type.
#pragma once

#include "nn/cpu/winograd_sides.h"

namespace nn::cpu {

// `S` is a vector type's operations: WIDTH, Vector, load, …
template <typename S, size_t window>
struct WinogradProducts: WinogradSides<S, window> {
  using Sides = WinogradSides<S, window>;
  using Weights = typename Sides::Weights;
  using WeightsBack = typename Sides::WeightsBack;
  using V = typename S::Vector;
  static constexpr size_t B = S::WIDTH, SIDE = Sides::SIDE, SLOTS = SIDE * SIDE + 1;
  static constexpr size_t TAPS = window * window;
  // With three vectors of outputs per tile, the sums of a panel fill the registers: 24 of AVX-512's
  // 32, 12 of AVX2's 16.
  static constexpr size_t PANEL = B / 2;
  static constexpr size_t STRIDE = PANEL * B;  // of a tile's points
  static constexpr size_t BLOCK_STRIDE = SLOTS * STRIDE;

  static void transformWeights(
      const float* g, size_t stride, size_t count, bool turned, float* u, size_t pointStride) {
    float plain[TAPS][B] = {};
    for (size_t k = 0; k < count; k++, g += stride) {
      for (size_t e = 0; e < TAPS; e++) plain[e][k] = g[e];
    }
    auto at = [&](size_t i, size_t j) INLINE {
      size_t e = i * window + j;
      return S::load(plain[turned ? TAPS - 1 - e : e]);
    };
    auto put = [&](size_t i, size_t j, V t)
                   INLINE { S::store(u + (i * SIDE + j) * pointStride, t); };
    Sides::template transform<Weights, Weights>(at, put);
  }

  static void gatherWeights(const float* u, size_t laneStride, size_t lanes, size_t pointStride,
      float* g, size_t stride, size_t count) {
    float plain[TAPS][B];
    auto at = [&](size_t i, size_t j) INLINE {
      const float* from = u + (i * SIDE + j) * pointStride;
      V sum = S::load(from);
      for (size_t lane = 1; lane < lanes; lane++) {
        sum = S::add(sum, S::load(from + lane * laneStride));
      }
      return sum;
    };
    auto put = [&](size_t i, size_t j, V value) INLINE { S::store(plain[i * window + j], value); };
    Sides::template transform<WeightsBack, WeightsBack>(at, put);
    for (size_t k = 0; k < count; k++, g += stride) {
      for (size_t e = 0; e < TAPS; e++) g[e] = plain[e][k];
    }
  }

  // Calls work.operator()<N>(the first block) for each group of N blocks.
  template <typename Work>
  static INLINE void byGroups(size_t blocks, Work&& work) {
    for (size_t k = 0; k < blocks;) {
      size_t left = blocks - k;
      if (left == 1) {
        work.template operator()<1>(k);
        k += 1;
      } else if (left == 2 || left == 4) {
        work.template operator()<2>(k);
        k += 2;
      } else {
        work.template operator()<3>(k);
        k += 3;
      }
    }
  }

  static size_t weightsPlace(size_t inputs, size_t outBlocks, size_t input, size_t outBlock) {
    size_t place = 0;
    byGroups(outBlocks, [&]<size_t N>(size_t k) {
      if (k <= outBlock) place = (k * inputs + input * N + outBlock - k) * B;
    });
    return place;
  }

  // A panel times a group: the product of PANEL × inputs and inputs × N·B.
  template <size_t N>
  static void multiplyPanel(const float* v, const float* u, float* m, size_t inputs) {
    V sums[PANEL][N];
#pragma GCC unroll 8
    for (size_t t = 0; t < PANEL; t++) {
#pragma GCC unroll 3
      for (size_t n = 0; n < N; n++) sums[t][n] = S::zero();
    }
    for (size_t left = inputs; left > 0; v += BLOCK_STRIDE) {
      size_t count = left < B ? left : B;
      left -= count;
#pragma GCC unroll 4
      for (size_t c = 0; c < count; c++, u += N * B) {
        V right[N];
#pragma GCC unroll 3
        for (size_t n = 0; n < N; n++) right[n] = S::load(u + n * B);
#pragma GCC unroll 8
        for (size_t t = 0; t < PANEL; t++) {
          V left = S::set(v[t * B + c]);
#pragma GCC unroll 3
          for (size_t n = 0; n < N; n++) sums[t][n] = S::fma(left, right[n], sums[t][n]);
        }
      }
    }
#pragma GCC unroll 3
    for (size_t n = 0; n < N; n++) {
#pragma GCC unroll 8
      for (size_t t = 0; t < PANEL; t++) S::store(m + n * BLOCK_STRIDE + t * B, sums[t][n]);
    }
  }

  static size_t blocksOf(size_t channels) {
    return (channels + B - 1) / B;
  }

  static void multiply(const float* v, const float* u, float* m, const PanelRun* runs,
      size_t runCount, size_t inputs, size_t outBlocks) {
    size_t inBlocks = blocksOf(inputs);
    byGroups(outBlocks, [&]<size_t N>(size_t k) {
      for (size_t r = 0; r < runCount; r++) {
        size_t end = runs[r].panel + (runs[r].tiles + PANEL - 1) / PANEL;
        for (size_t p = runs[r].panel; p < end; p++) {
          multiplyPanel<N>(v + p * inBlocks * BLOCK_STRIDE, u + k * B * inBlocks * B,
              m + (p * outBlocks + k) * BLOCK_STRIDE, inputs);
        }
      }
    });
  }

  // Half a block of inputs times a group, summed over tiles.
  template <size_t N>
  static void accumulateHalf(const float* v, const float* m, float* u, const PanelRun* runs,
      size_t runCount, size_t inPanel, size_t outPanel) {
    V sums[PANEL][N];
#pragma GCC unroll 8
    for (size_t c = 0; c < PANEL; c++) {
#pragma GCC unroll 3
      for (size_t n = 0; n < N; n++) sums[c][n] = S::load(u + (c * N + n) * B);
    }
    for (size_t r = 0; r < runCount; r++) {
      const float* left = v + runs[r].panel * inPanel;
      const float* right = m + runs[r].panel * outPanel;
      for (size_t rest = runs[r].tiles; rest > 0; left += inPanel, right += outPanel) {
        size_t count = rest < PANEL ? rest : PANEL;
        rest -= count;
        for (size_t t = 0; t < count; t++) {
          V outputs[N];
#pragma GCC unroll 3
          for (size_t n = 0; n < N; n++) outputs[n] = S::load(right + n * BLOCK_STRIDE + t * B);
#pragma GCC unroll 8
          for (size_t c = 0; c < PANEL; c++) {
            V input = S::set(left[t * B + c]);
#pragma GCC unroll 3
            for (size_t n = 0; n < N; n++) sums[c][n] = S::fma(input, outputs[n], sums[c][n]);
          }
        }
      }
    }
#pragma GCC unroll 8
    for (size_t c = 0; c < PANEL; c++) {
#pragma GCC unroll 3
      for (size_t n = 0; n < N; n++) S::store(u + (c * N + n) * B, sums[c][n]);
    }
  }

  static void accumulate(const float* v, const float* m, float* u, const PanelRun* runs,
      size_t runCount, size_t inputs, size_t outBlocks) {
    size_t inBlocks = blocksOf(inputs);
    byGroups(outBlocks, [&]<size_t N>(size_t k) {
      for (size_t half = 0; half * PANEL < inputs; half++) {
        accumulateHalf<N>(v + half / 2 * BLOCK_STRIDE + half % 2 * PANEL, m + k * BLOCK_STRIDE,
            u + (k * inBlocks * B + half * PANEL * N) * B, runs, runCount, inBlocks * BLOCK_STRIDE,
            outBlocks * BLOCK_STRIDE);
      }
    });
  }

  static constexpr Winograd TABLE = {
      .window = window,
      .side = SIDE,
      .slots = SLOTS,
      .panel = PANEL,
      .weightsPlace = weightsPlace,
      .transformWeights = transformWeights,
      .gatherWeights = gatherWeights,
      .multiply = multiply,
      .accumulate = accumulate,
  };
};

}  // namespace nn::cpu

// nn/cpu/winograd.h: Winograd's convolution with 3×3 and 5×5 windows in tiles of 4×4: the vector
// loops of its transforms and products, tables of them for each instruction set.
#pragma once

// Files that are compiled for newer instruction sets include this file, so it must not include or
// define inline code: see kernels.h.
#include <stddef.h>

#include "nn/cpu/kernels.h"

namespace nn::cpu {

// A tile in one image: the pixel where its patch begins, and how many outputs it has, which are 3
// or 4 per side. A patch may reach over the edges of the image. There zeros are read, and nothing
// is written.
struct Tile {
  int row, column;
  unsigned rows, columns;
};

// The points per side of a whole tile. A side with 3 outputs has one point less.
template <size_t window>
constexpr size_t WINOGRAD_SIDE = window + 3;

// Tiles that follow each other in panels.
struct PanelRun {
  size_t panel;  // the first one
  size_t tiles;
};

// F(4×4, 3×3) and F(4×4, 5×5) of Lavin and Gray, "Fast Algorithms for Convolutional Neural
// Networks" (2016, arXiv 1509.09308). Let g be a filter, y a 4×4 tile of the output, and x the
// patch of the input that it depends on, which has 6×6 or 8×8 pixels:
//   y  = A'[(G g G') ⊙ (B' x B)] A        dg = G'[(B' x B) ⊙ (A dy A')] G
//   dx = B[(G g G') ⊙ (A dy A')] B'
// Here ⊙ multiplies element by element. Summed over channels, images and tiles, it becomes 36 or 64
// independent matrix products, one per *point*. The points are pairs of
//   0, ±5/8, ±3/2, ∞         for 3×3 windows,
//   0, ±1/2, ±1, ±2, ∞       for 5×5 windows,
// at which polynomials are evaluated. Of the sets of points that we tried, these lose the fewest
// digits. Only the last row and column of a tile depend on ∞. A tile that ends before them has 3×3
// outputs.
//
// Transformed tiles are stored in panels of `panel` tiles. A panel has one block of channels after
// another, a block one point after another, and a point one tile after another. Each block has room
// for `slots` points. Transformed weights are stored point by point. A point has groups of a few
// blocks of outputs, and a group has one input after another.
struct Winograd {
  unsigned window;  // 3 or 5
  unsigned side;    // points per side
  // One more than there are points. Otherwise the blocks of a point would fall into a few sets of
  // the first-level cache.
  unsigned slots;
  unsigned panel;

  // Returns where the weights from one input to a block of outputs begin among those of a point.
  // Here `inputs` includes the channels that only fill the last block. Below it does not.
  size_t (*weightsPlace)(size_t inputs, size_t outBlocks, size_t input, size_t outBlock);
  // u = G g G' for `count` filters, at most a block of them. Filters are `stride` floats apart. The
  // rest of the block becomes 0. Points are `pointStride` apart. With `turned`, turns the filters
  // by half a turn, as the gradient of the input needs them.
  void (*transformWeights)(
      const float* g, size_t stride, size_t count, bool turned, float* u, size_t pointStride);
  // g = G' u G, where u is the sum over all lanes, in their order.
  void (*gatherWeights)(const float* u, size_t laneStride, size_t lanes, size_t pointStride,
      float* g, size_t stride, size_t count);

  // For one point, m = v · u. v is tiles × inputs, u is inputs × outputs. Works on whole panels.
  void (*multiply)(const float* v, const float* u, float* m, const PanelRun* runs, size_t runCount,
      size_t inputs, size_t outBlocks);
  // For one point, u += v' · m.
  void (*accumulate)(const float* v, const float* m, float* u, const PanelRun* runs,
      size_t runCount, size_t inputs, size_t outBlocks);
};

// Loops between images and transformed tiles, for all blocks of an image of height × width pixels.
// One table is for images of floats, another for images of Bfloat16. Both take images as void*.
// Transformed tiles are floats in both.
struct WinogradImages {
  // v = B' x B.
  void (*transformInput)(
      const void* x, unsigned height, unsigned width, const Tile& tile, size_t blocks, float* v);
  // dx += B v B', the transposed operation.
  void (*transformInputBack)(
      const float* v, const Tile& tile, size_t blocks, void* dx, unsigned height, unsigned width);
  // m = A dy A'. Here `tile` begins at its first output. Adds the sums of its pixels to `sums`,
  // block by block, unless `sums` is null.
  void (*transformGradient)(const void* dy, unsigned height, unsigned width, const Tile& tile,
      size_t blocks, float* m, float* sums);
  // y = A' m A + bias, or y += A' m A + bias. `tile` begins at its first output. A null `bias`
  // counts as 0.
  void (*transformOutput)(const float* m, const Tile& tile, size_t blocks, const float* bias,
      Write write, void* y, unsigned height, unsigned width);
};

// The first of each two is for 3×3 windows, the second for 5×5.
extern const Winograd AVX2_WINOGRAD[2];
extern const Winograd AVX512_WINOGRAD[2];
extern const WinogradImages AVX2_WINOGRAD_IMAGES[2];
extern const WinogradImages AVX512_WINOGRAD_IMAGES[2];
extern const WinogradImages AVX512_BF16_WINOGRAD_IMAGES[2];  // needs AVX512_BF16 too

}  // namespace nn::cpu

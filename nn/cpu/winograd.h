// nn/cpu/winograd.h: Winograd's convolution with 3×3 windows in tiles of 4×4: the vector loops of
// its transforms and products, tables of them for each instruction set.
#pragma once

// Included by files that are compiled for newer instruction sets: nothing with inline code may come
// in here, see kernels.h.
#include <stddef.h>

#include "nn/cpu/kernels.h"

namespace nn::cpu {

// A tile in one image: where its patch begins, in pixels of the image, which it may leave on all
// sides: 0 is read there, and nothing written. It has `rows` × `columns` points, 5 or 6.
struct Tile {
  int row, column;
  unsigned rows, columns;
};

// Tiles that follow each other in panels.
struct PanelRun {
  size_t panel;  // the first one
  size_t tiles;
};

// F(4×4, 3×3) of Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2016,
// arXiv 1509.09308): with x a 6×6 patch of the input, g a filter, y the 4×4 tile of the output,
//   y  = A'[(G g G') ⊙ (B' x B)] A        dg = G'[(B' x B) ⊙ (A dy A')] G
// where ⊙ multiplies element by element, and sums over channels, images and tiles make 36
// independent matrix products of it, one a *point*. They are pairs of polynomials' values at
//   0, a, -a, b, -b, ∞       with a = 5/8, b = 3/2,
// which lose fewer digits than the paper's 0, ±1, ±2, ∞. Only the last row and column of a tile
// depend on ∞: one that ends before them has 5 points a side and 3×3 outputs.
//
// Transformed tiles lie in panels of `panel` tiles; in a panel block by block of channels, in a
// block point by point, there tile by tile. Each block has room for SLOTS points. Transformed
// weights lie, for each point, in groups of a few blocks of outputs, in a group input by input.
struct Winograd {
  static constexpr size_t SIDE = 6;
  static constexpr size_t POINTS = SIDE * SIDE;
  // One more: else a point's blocks would fall into a few sets of the first-level cache.
  static constexpr size_t SLOTS = POINTS + 1;

  unsigned panel;

  // Where the weights from one input to a block of outputs lie among those of a point, `inputs`
  // filled up to whole blocks.
  size_t (*weightsPlace)(size_t inputs, size_t outBlocks, size_t input, size_t outBlock);
  // u = G g G' of `count` filters, up to a block of them, their 9 numbers `stride` apart; what
  // fills up the block gets zeros. Points are `pointStride` apart. `turned`: by half a turn, as the
  // gradient of the input wants it.
  void (*transformWeights)(
      const float* g, size_t stride, size_t count, bool turned, float* u, size_t pointStride);
  // g = G' u G, where u is the sum of those of all lanes, in their order.
  void (*gatherWeights)(const float* u, size_t laneStride, size_t lanes, size_t pointStride,
      float* g, size_t stride, size_t count);

  // Of one point: m = v · u, tiles × inputs · inputs × outputs. Works on whole panels.
  void (*multiply)(const float* v, const float* u, float* m, const PanelRun* runs, size_t runCount,
      size_t inBlocks, size_t outBlocks);
  // Of one point: u += v' · m.
  void (*accumulate)(const float* v, const float* m, float* u, const PanelRun* runs,
      size_t runCount, size_t inBlocks, size_t outBlocks);
};

// Between tiles of images, which are all floats or all Bfloat16 (void* in the table of either), and
// transformed ones, which are floats. All blocks of an image of height × width pixels.
struct WinogradImages {
  // v = B' x B.
  void (*transformInput)(
      const void* x, unsigned height, unsigned width, const Tile& tile, size_t blocks, float* v);
  // m = A dy A'. Here the tile begins where its outputs do. Adds the sums of its pixels to `sums`,
  // block by block, unless that is null.
  void (*transformGradient)(const void* dy, unsigned height, unsigned width, const Tile& tile,
      size_t blocks, float* m, float* sums);
  // y = A' m A + bias, or y += that; likewise. No bias if it is null.
  void (*transformOutput)(const float* m, const Tile& tile, size_t blocks, const float* bias,
      Write write, void* y, unsigned height, unsigned width);
};

extern const Winograd AVX2_WINOGRAD;
extern const Winograd AVX512_WINOGRAD;
extern const WinogradImages AVX2_WINOGRAD_IMAGES;
extern const WinogradImages AVX512_WINOGRAD_IMAGES;
extern const WinogradImages AVX512_BF16_WINOGRAD_IMAGES;  // takes AVX512_BF16 besides

}  // namespace nn::cpu

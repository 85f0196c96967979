// nn/cpu/amx.h: convolutions of bfloat16s as products of AMX tiles: the loops, and a table of them
// for processors that have AMX and one for those that emulate it.
#pragma once

// Files that are compiled for newer instruction sets include this file, so it must not include or
// define inline code: see kernels.h.
#include <stddef.h>
#include <stdint.h>

#include "nn/cpu/kernels.h"

namespace nn::cpu {

// An AMX tile has 16 rows of 64 bytes. A product adds A · B to 16 × 16 floats, where A has 16 rows
// of 32 bfloat16s, and B has 32 rows of 16.
//
// The rows of A are *images*, not pixels. So images come in groups of 16 or 32, which are stored
// together pixel by pixel:
//   channels/32 × height × width × images × 32 channels
// 16 images and 32 channels of one pixel are a tile. A window that reaches over the edge of the
// image has fewer products, and needs no zeros around the image. A stride only changes the list of
// pixels. In the gradient of the weights, the sum runs over the images of a pixel, so a window
// moves by whole tiles, or by halves of them.
constexpr size_t AMX_CHANNELS = 32;
constexpr size_t AMX_SIDE = 16;            // rows of a tile, and channels that a tile of sums has
constexpr size_t AMX_ROWS = 2 * AMX_SIDE;  // of the two tiles that are multiplied together
constexpr size_t AMX_TILE = 512;           // bfloat16s
constexpr size_t AMX_SUMS = AMX_SIDE * AMX_SIDE;  // floats

// How many tiles of 16 channels, and blocks of 32, hold the given number of channels. Static, so
// that each file has its own copy.
static constexpr size_t amxTiles(size_t channels) {
  return (channels + AMX_SIDE - 1) / AMX_SIDE;
}
static constexpr size_t amxBlocks(size_t channels) {
  return (channels + AMX_CHANNELS - 1) / AMX_CHANNELS;
}

// Two tiles of the input, and which weights of the window they meet.
struct AmxSource {
  uint32_t first, second, tap;
};

// Two tiles of the output that are computed with the same weights: 32 images of one pixel, or 16
// images of two pixels. If `first` and `second` are equal, the pair has only one tile. `sources` is
// the index of its first source. Its sources end where those of the next pair begin.
struct AmxPair {
  uint32_t first, second, sources;
};

// One group of images through a convolution: y = x * w + bias, or the gradient of the input as
// another list of sources and weights. Tiles count within a block of 32 channels.
struct AmxProduct {
  const AmxPair* pairs;  // one more than are computed
  const AmxSource* sources;
  size_t taps;       // of the window
  size_t inBlocks;   // of 32 channels
  size_t inStride;   // tiles from one of them to the next
  size_t outTiles;   // of 16 channels
  size_t outStride;  // as inStride
  const Bfloat16* in;
  const Bfloat16* weights;  // see packWeights
  const float* bias;        // 16 per tile, or null
  void* out;
  bool outIsFloats;  // otherwise bfloat16s
  Write write;
};

// A convolution as the gradient of its weights sees it.
struct AmxWindow {
  size_t inHeight, inWidth, outHeight, outWidth;
  size_t kernelHeight, kernelWidth, stride, pad;
  size_t inTiles, outTiles;  // of 16 channels
  size_t outPixels;          // from one block of dy to the next
};

// Up to AMX_RUN neighbouring values that a window sees in a row of a plain image. They become
// channels of a pixel of 32-channel blocks.
constexpr size_t AMX_RUN = 8;
struct AmxRun {
  uint32_t from;  // bfloat16s from the first one of the window's rows: see gatherRow()
  uint32_t to;    // bfloat16s from the pixel's first one
  uint8_t mask;   // bit i: value i counts
};

// Returns the bfloat16s that gatherRow() needs in `scratch` for one row of the input. They include
// the padding on both sides, and room for reads beyond it.
static inline size_t amxPaddedWidth(const AmxWindow& w) {
  size_t used = (w.outWidth - 1) * w.stride + w.kernelWidth;
  return (used > w.inWidth + w.pad ? used : w.inWidth + w.pad) + AMX_RUN;
}

// The loops on tiles for groups of one size.
struct AmxLoops {
  size_t images;  // of a group: 16 or 32

  // Computes pairs begin … end - 1 of the output, in all its channels. Channels that only fill up
  // the last block become 0, or their bias.
  void (*multiply)(const AmxProduct& product, size_t begin, size_t end);

  // sums += the gradient of the weights of one group, from rows begin … end - 1 of dy, as tiles of
  // 16 × 16 floats, inputs × outputs: kernel row × tile of inputs × tile of outputs × kernel
  // column. `scratch` has room for scratchValues(window) bfloat16s.
  void (*accumulate)(const AmxWindow& window, const Bfloat16* x, const Bfloat16* dy, size_t begin,
      size_t end, float* sums, Bfloat16* scratch);
  size_t (*scratchValues)(const AmxWindow& window);

  // Packs floats w[output][input][tap] as tiles: tile of outputs × tap × block of inputs. Each has
  // 16 pairs of inputs × 16 outputs × 2 inputs, padded with zeros. Outputs are `outStride` floats
  // apart, inputs `inStride`.
  void (*packWeights)(const float* w, size_t outputs, size_t outStride, size_t inputs,
      size_t inStride, size_t taps, Bfloat16* packed);

  // Adds up `count` results of accumulate(), which are `stride` floats apart, in their order.
  // Writes the sum as plain weights[output][input][tap], for the outputs of tile `outTile`.
  void (*unpackSums)(const AmxWindow& window, const float* sums, size_t count, size_t stride,
      size_t outTile, size_t outputs, size_t inputs, float* weights);

  // to += the sums over pixels and images of each channel of a group.
  void (*addChannels)(const Bfloat16* from, size_t blocks, size_t pixels, float* to);

  // For each pixel of row `y` of the output, writes the window's values in an image of plain
  // floats: runs[0 … count - 1], and zeros in the rest of the block at `lastBlock`. Pixels are
  // `distance` values apart. First, the rows of the window become bfloat16s in `scratch`, kernel
  // height × inputs rows of amxPaddedWidth() each.
  void (*gatherRow)(const AmxWindow& window, size_t inputs, const AmxRun* runs, size_t count,
      size_t lastBlock, const float* image, size_t y, Bfloat16* to, size_t distance,
      Bfloat16* scratch);
};

// Both kinds need AVX512_BF16, and give the same bits. The numbers are the images of a group.
extern const AmxLoops AMX_LOOPS_16, AMX_LOOPS_32;                    // need AMX_BF16, see hasAmx()
extern const AmxLoops EMULATED_AMX_LOOPS_16, EMULATED_AMX_LOOPS_32;  // compute with FMA

}  // namespace nn::cpu

// nn/cpu/kernels.h: our own vector loops around the convolutions, with one table of them for each
// instruction set and type of values.
#pragma once

// Files that are compiled for newer instruction sets include this file. Do not include anything
// else with inline code here: the linker could keep a copy of that code that an older CPU cannot
// run.
#include <stddef.h>
#include <stdint.h>

#include "nn/dropout.h"
#include "nn/element.h"

namespace nn::cpu {

struct AmxLoops;

// Whether a kernel overwrites its output or adds to it.
enum class Write { SET, ADD };

// The function that is applied after the affine map of a batch norm.
enum class After { NOTHING, RELU, GELU };

// Windows over one image: sides in pixels.
struct Window {
  unsigned inHeight, inWidth, outHeight, outWidth, kernel, stride, pad;
};

// The windows of a convolution over one plain image of floats, C×H×W, whose padding is part of it.
struct Planes {
  size_t rowFloats;  // from a row of the image to the next one
  size_t stride;     // of the windows, in pixels
  size_t outHeight, outWidth;
  size_t blocks;           // of filters
  size_t taps;             // C·kernel²
  const uint32_t* places;  // of the taps: floats from the corner of a window
};

// Per-channel numbers of a batch norm, each padded with zeros to whole blocks. Let y be the input,
// z = scale·y + shift, and g the gradient of z. A ReLU makes g 0 where z is below 0, and GELU
// multiplies it by its slope at z.
//   forward   out = z, max(z, 0) or gelu(z)
//   backward  dy = scale · (g - meanGradient - (y - mean) · slope)
struct Channels {
  float* mean;
  float* inverse;  // 1 / sqrt(variance + epsilon)
  float* scale;
  float* shift;
  float* meanGradient;   // mean of g over batch and pixels
  float* slope;          // inverse² · mean of g·(y - mean)
  float* gammaGradient;  // inverse · sum of g·(y - mean)
  float* betaGradient;   // sum of g
};

// The loops of an activation f, in place: x = f(x), and from the outputs y, gradient = gradient ·
// f'(x). `count` is a multiple of the block.
struct ActivationLoops {
  void (*forward)(void* x, size_t count);
  void (*backward)(const void* y, void* gradient, size_t count);
};

// Loops over values. A table is for floats or for Bfloat16: the values that it takes as void* are
// all of that type. Calculations and sums are in float32.
//
// Images are blocked: C/block × H × W × block values ("nChw16c"). Channels are padded with zeros to
// whole blocks. Unless a comment says otherwise, a kernel works on one image, which has `blocks`
// blocks of `pixels` pixels each.
//
// Tables for AMX work on a group of images at a time, as amx.h describes it. `images` says how many
// images of the group are part of the batch. Others only fill the group: see Batch. For other
// tables, `images` is 1.
struct ValueKernels {
  void (*normalise)(const void* y, const Channels& channels, After after, void* out, size_t blocks,
      size_t pixels);
  // Writes 2·block floats per block to `partial`: the means over the pixels of the image, then the
  // sums of squared distances from these means.
  void (*statistics)(const void* y, float* partial, size_t blocks, size_t pixels, size_t images);
  // Writes 2·block floats per block to `partial`: the sums of g, then those of g·(y - mean).
  void (*reduceGradient)(const void* y, const void* gradient, const Channels& channels, After after,
      float* partial, size_t blocks, size_t pixels);
  void (*normaliseBackward)(const void* y, const void* gradient, const Channels& channels,
      After after, void* dy, Write write, size_t blocks, size_t pixels, size_t images);

  ActivationLoops relu;
  ActivationLoops tanh;
  ActivationLoops sigmoid;  // turns the zeros that pad a block into 0.5
  ActivationLoops elu;
  // to = gelu(from); dx = gradient · gelu'(x), or dx += that. As in ActivationLoops, `count` is a
  // multiple of the block.
  void (*gelu)(const void* from, void* to, size_t count);
  void (*geluBackward)(const void* x, const void* gradient, void* dx, Write write, size_t count);

  // to = from, or to += from, scaled up, without the elements that the mask takes away. The mask
  // may also be applied to the padding of the last block. Also works on one image of a group: the
  // one where `from` and `to` begin.
  void (*drop)(const void* from, const DropoutMask& mask, void* to, Write write, size_t blocks,
      size_t pixels);

  // Writes the place of the first maximum in each window to `index`, as kernel·row + column, unless
  // `index` is null. Every window must overlap the image.
  void (*maxPool)(const void* x, const Window& window, void* out, uint16_t* index, size_t blocks);
  void (*maxPoolBackward)(const void* gradient, const uint16_t* index, const Window& window,
      void* dx, Write write, size_t blocks);
  void (*averagePool)(const void* x, const Window& window, void* out, size_t blocks);
  void (*averagePoolBackward)(
      const void* gradient, const Window& window, void* dx, Write write, size_t blocks);

  // Writes the windows of a convolution as rows of a matrix of floats, for pixels begin … end - 1
  // of the output. A row is the window of one pixel. It has the channels at each of the kernel²
  // places, and 0 outside of the image. May write up to one block after the last row.
  void (*gatherWindows)(
      const void* x, const Window& window, size_t channels, size_t begin, size_t end, float* rows);
  // Does the transposed operation: adds the rows to the image. May read up to one block after the
  // last row.
  void (*scatterWindows)(
      const float* rows, const Window& window, size_t channels, size_t begin, size_t end, void* x);

  // to = factor · from, or to += factor · from; `count` is a multiple of the block.
  void (*scale)(const void* from, float factor, void* to, Write write, size_t count);
  // to = from, or to += from; any count.
  void (*copy)(const void* from, void* to, Write write, size_t count);
  // to = ReLU(to + from). A whole number of blocks.
  void (*addRelu)(const void* from, void* to, size_t count);
  // Convert values to floats, and back. round() rounds to the nearest value, ties to even: to =
  // from, or to += from. Any count.
  void (*widen)(const void* from, float* to, size_t count);
  void (*round)(const float* from, void* to, Write write, size_t count);
};

// The kernels of one instruction set. For AMX there is one table for each size of a group.
struct Kernels {
  unsigned block;  // channels
  unsigned group;  // images that lie together: 1, or 16 or 32 for AMX
  ValueKernels floats;
  const ValueKernels* bfloat16s;  // null if the instruction set has none

  // Combines the results of statistics() for one block: mean and biased variance over all images,
  // in the order of the images (Chan et al. 1979). Those of image n are at partial[n·stride]. For
  // AMX, an image here is a group. The last group may not be full: `last` is the share of it that
  // is part of the batch, and 1 without groups.
  void (*combineStatistics)(const float* partial, size_t images, float last, size_t stride,
      size_t pixels, float* mean, float* variance);
  // Adds up both sums of one block over all images, in the order of the images.
  void (*sumPartials)(
      const float* partial, size_t images, size_t stride, float* first, float* second);
  // Does the same as ValueKernels::drop to a row in plain order. Any count.
  void (*dropRow)(const float* from, const DropoutMask& mask, float* to, size_t count);

  // Convolutions of plain images, see Planes. `weights` has one float per tap and filter, and
  // `bias` one per filter, both padded to whole blocks of filters. `bias` may be null. `y` is
  // blocked. Tables for AMX have neither planesForward nor planesAccumulate: both are null there.
  void (*planesForward)(
      const float* x, const Planes& planes, const float* weights, const float* bias, float* y);
  // Adds the gradients of weights and bias to `sums` and `biasSums`, in the same layouts. The
  // latter may be null.
  void (*planesAccumulate)(
      const float* x, const float* dy, const Planes& planes, float* sums, float* biasSums);

  const AmxLoops* amx;  // of tables for AMX; otherwise null
};

extern const Kernels AVX2_KERNELS;
extern const Kernels AVX512_KERNELS;  // its table `bfloat16s` needs AVX512_BF16 too
extern const ValueKernels AVX512_BFLOAT16_KERNELS;
// For groups of 16 and of 32 images. Both kinds need AVX512_BF16, and give the same bits.
extern const Kernels AMX_KERNELS_16, AMX_KERNELS_32;  // need AMX_BF16, see hasAmx()
extern const Kernels EMULATED_AMX_KERNELS_16, EMULATED_AMX_KERNELS_32;

}  // namespace nn::cpu

// nn/cpu/kernels.h: our own vector loops around the convolutions, a table of them for each
// instruction set and for what values are.
#pragma once

// Included by files that are compiled for newer instruction sets: nothing else with inline code may
// come in here, or the linker could keep a copy of it that an older CPU cannot run.
#include <stddef.h>
#include <stdint.h>

#include "nn/dropout.h"
#include "nn/element.h"

namespace nn::cpu {

// Whether a kernel overwrites its output or adds to it.
enum class Write { SET, ADD };

// What follows the affine map of a batch norm.
enum class After { NOTHING, RELU, GELU };

// Windows over one image: sides in pixels.
struct Window {
  unsigned inHeight, inWidth, outHeight, outWidth, kernel, stride, pad;
};

// Per-channel numbers of a batch norm, each padded with zeros to whole blocks. With y the input, z
// = scale·y + shift and g the gradient of z (0 where a ReLU cut it off, times GELU's slope at z):
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

// An activation f: x = f(x), and, from the outputs y, gradient = gradient · f'(x), in place.
// `count` values are a multiple of the block.
struct ActivationLoops {
  void (*forward)(void* x, size_t count);
  void (*backward)(const void* y, void* gradient, size_t count);
};

// Loops over values, which are all floats or all Bfloat16 (void* in the table of either); sums and
// what is calculated with are floats.
//
// Images are blocked: C/block × H × W × block values ("nChw16c"), channels padded with zeros to
// whole blocks. Unless said otherwise a kernel works on one image of `blocks` blocks with `pixels`
// pixels each.
struct ValueKernels {
  void (*normalise)(const void* y, const Channels& channels, After after, void* out, size_t blocks,
      size_t pixels);
  // Per block into `partial` (2·block floats a block): the means over the image's pixels, then the
  // sums of squared distances from them.
  void (*statistics)(const void* y, float* partial, size_t blocks, size_t pixels);
  // Per block into `partial`: the sums of g, then of g·(y - mean).
  void (*reduceGradient)(const void* y, const void* gradient, const Channels& channels, After after,
      float* partial, size_t blocks, size_t pixels);
  void (*normaliseBackward)(const void* y, const void* gradient, const Channels& channels,
      After after, void* dy, Write write, size_t blocks, size_t pixels);

  ActivationLoops relu;
  ActivationLoops tanh;
  ActivationLoops sigmoid;  // which makes 0.5 of what fills up a block
  ActivationLoops elu;
  // to = gelu(from); dx = gradient · gelu'(x), or dx += that. As in ActivationLoops, `count` is a
  // multiple of the block.
  void (*gelu)(const void* from, void* to, size_t count);
  void (*geluBackward)(const void* x, const void* gradient, void* dx, Write write, size_t count);

  // to = from, or to += from, scaled up, without what the mask takes away. The last block's
  // channels may count further than the row's values.
  void (*drop)(const void* from, const DropoutMask& mask, void* to, Write write, size_t blocks,
      size_t pixels);

  // `index`, unless it is null, gets the place of the first maximum in its window: kernel·row +
  // column. No window lies outside of the image altogether.
  void (*maxPool)(const void* x, const Window& window, void* out, uint16_t* index, size_t blocks);
  void (*maxPoolBackward)(const void* gradient, const uint16_t* index, const Window& window,
      void* dx, Write write, size_t blocks);
  void (*averagePool)(const void* x, const Window& window, void* out, size_t blocks);
  void (*averagePoolBackward)(
      const void* gradient, const Window& window, void* dx, Write write, size_t blocks);

  // A convolution's windows as rows of a matrix of floats. A row is the window of one pixel of the
  // output: for each of its kernel² places the channels there, 0 outside of the image. Of the
  // pixels begin … end - 1. May write a block beyond the last row.
  void (*gatherWindows)(
      const void* x, const Window& window, size_t channels, size_t begin, size_t end, float* rows);
  // The transposed: adds the rows to the image. May read a block beyond the last row.
  void (*scatterWindows)(
      const float* rows, const Window& window, size_t channels, size_t begin, size_t end, void* x);

  // to = factor · from, or to += factor · from; `count` is a multiple of the block.
  void (*scale)(const void* from, float factor, void* to, Write write, size_t count);
  // to = from, or to += from; any count.
  void (*copy)(const void* from, void* to, Write write, size_t count);
  // From values to floats, and back to the nearest value (of two the even one): to = from, or to +=
  // from. Any count.
  void (*widen)(const void* from, float* to, size_t count);
  void (*round)(const float* from, void* to, Write write, size_t count);
};

struct Kernels {
  unsigned block;
  ValueKernels floats;
  const ValueKernels* bfloat16s;  // null if the instruction set has none

  // Of one block: mean and biased variance over all images, from the partials at partial[n·stride],
  // in order of n (Chan et al. 1979).
  void (*combineStatistics)(const float* partial, size_t images, size_t stride, size_t pixels,
      float* mean, float* variance);
  // Of one block: both sums over all images, in order of n.
  void (*sumPartials)(
      const float* partial, size_t images, size_t stride, float* first, float* second);
  // As ValueKernels::drop, of a row in plain order; any count.
  void (*dropRow)(const float* from, const DropoutMask& mask, float* to, size_t count);
};

extern const Kernels AVX2_KERNELS;
extern const Kernels AVX512_KERNELS;  // whose bfloat16s take AVX512_BF16 besides
extern const ValueKernels AVX512_BFLOAT16_KERNELS;

}  // namespace nn::cpu

#include "nn/cpu/choose_convolution.h"

#include "nn/cpu/direct_convolution.h"
#include "nn/cpu/gemm_convolution.h"
#include "nn/cpu/winograd_convolution.h"

namespace nn::cpu {
namespace {

// Whether the direct convolution would spend half of its arithmetic or more on the padding of
// channels. Measured with 20 → 50 channels, 5×5, AVX-512: products are 1.5 times faster, forward
// and backward together. With a factor of less than two, or on blocks of 8, they gain little; with
// up to 16 channels they are slow, being narrow; 3×3 is mostly Winograd, which stays faster; and
// 1×1 has no places to share the cost of the copies. Products are of floats, half as fast as
// bfloat16s.
bool isMostlyPadding(const ConvolutionShape& shape) {
  size_t in = shape.in.channels, out = shape.out.channels;
  size_t padded = Extent(shape.in, shape.block).blocks * Extent(shape.out, shape.block).blocks *
                  shape.block * shape.block;
  return shape.element == Element::FLOAT32 && shape.block == 16 && shape.op.kernel > 3 && in > 16 &&
         out > 16 && padded >= 2 * in * out;
}

// Whether a lane has enough pixels to pay for the transformed weights: they are made once a step in
// each direction, and their gradient is turned back, however few pixels that makes cheaper. What it
// costs grows with the weights; per weight it is dearer where they do not fit in a cache, so that
// twice the channels take about twice the pixels. Measured with 64 and 256 channels on 3×3, 7×7 and
// 14×14 images, forward and both gradients, it is even at 0.6 to 1 (AVX2), 1 to 2 (AVX-512) and 2
// to 6 pixels a channel (bfloat16, where direct convolutions are twice as fast).
bool hasPixelsForWinograd(const ConvolutionShape& shape) {
  uint64_t images = (shape.images + shape.lanes - 1) / shape.lanes;
  uint64_t pixelsPerChannel = shape.element == Element::BFLOAT16 ? 4 : 1;
  return images * shape.out.height * shape.out.width >=
         pixelsPerChannel * kj::max(shape.in.channels, shape.out.channels);
}

// Whether our own Winograd is the fastest. Measured on Zen 4, one thread, with the layers of
// inception-bn-28-small, airbench94 and residual networks, forward and both gradients: against
// oneDNN's Winograd, which is there for floats with AVX-512 only, 1.0 to 1.4 times as fast on 28×28
// and larger images, 1.4 to 1.8 times on 14×14, 1.2 to 1.5 times on 7×7 and 2 to 2.7 times on 3×3;
// against direct convolutions with AVX2 2.1 to 3.3 times; whole steps of inception-bn-28-small 1.3
// times, with bfloat16 1.25 times. With transformed weights of 38 MB (512 → 512 channels) it gains
// little, and networks have many such layers: memory sets the limit. On sides of 1 and 2 most of a
// tile would be waste; and up to three channels are taken plain, where a blocked copy would be
// mostly padding.
bool winsByWinograd(const ConvolutionShape& shape) {
  constexpr uint64_t WEIGHTS_MAX_BYTES = 16 * 1024 * 1024;
  return isWinogradShape(shape) && shape.in.channels > 3 && shape.out.height >= 3 &&
         shape.out.width >= 3 && winogradWeights_bytes(shape) <= WEIGHTS_MAX_BYTES &&
         hasPixelsForWinograd(shape);
}

// Whether oneDNN 2.6's gradient of the weights is wrong: with bfloat16s on images below the stride,
// it adds scratch memory that it did not write to weights that meet nothing but padding.
bool readsStaleMemory(const ConvolutionShape& shape) {
  return shape.element == Element::BFLOAT16 &&
         kj::min(shape.in.width, shape.in.height) < shape.op.stride;
}

}  // namespace

kj::Own<Convolution> makeConvolution(
    ConvolutionShape shape, ConvolutionArrays arrays, dnnl_engine_t engine) {
  if (winsByWinograd(shape)) return makeWinogradConvolution(shape, arrays);
  if (!isMostlyPadding(shape) && !readsStaleMemory(shape)) {
    KJ_IF_MAYBE(direct, makeDirectConvolution(shape, arrays, engine)) return kj::mv(*direct);
  }
  return makeGemmConvolution(shape, arrays);
}

}  // namespace nn::cpu

#include "nn/cpu/choose_convolution.h"

#include "nn/cpu/direct_convolution.h"
#include "nn/cpu/gemm_convolution.h"
#include "nn/cpu/plane_convolution.h"
#include "nn/cpu/winograd_convolution.h"

namespace nn::cpu {
namespace {

// Whether the direct convolution would spend at least half of its arithmetic on the padding of
// channels. Measured with 20 → 50 channels, 5×5 and AVX-512, matrix products are 1.5 times faster,
// forward and backward together. With stride 1, such a convolution runs on Winograd, which is twice
// as fast as products. Products do not pay in these cases:
// - With less padding, or with blocks of 8, they gain little.
// - With up to 16 channels the matrices are narrow, and products are slow.
// - 3×3 mostly runs on Winograd, which is faster.
// - A window of 1×1 has a single place, which does not pay for the copies.
// - Products are of floats. They are half as fast as convolutions of bfloat16s.
bool isMostlyPadding(const ConvolutionShape& shape) {
  size_t in = shape.in.channels, out = shape.out.channels;
  size_t padded = Extent(shape.in, shape.block).blocks * Extent(shape.out, shape.block).blocks *
                  shape.block * shape.block;
  return shape.element == Element::FLOAT32 && shape.block == 16 && shape.op.kernel > 3 && in > 16 &&
         out > 16 && padded >= 2 * in * out;
}

// Whether a lane has enough pixels to pay for the transformed weights. Each step transforms the
// weights once per direction, and transforms their gradient back, however few pixels there are. The
// cost grows with the weights, and faster if they do not fit in a cache: twice the channels need
// about twice the pixels. Winograd and direct convolutions are equally fast at 0.6 to 1 pixels per
// channel with AVX2, at 1 to 2 with AVX-512, and at 2 to 6 with bfloat16, where direct convolutions
// are twice as fast. Measured with 64 and 256 channels on 3×3, 7×7 and 14×14 images, forward and
// both gradients.
bool hasPixelsForWinograd(const ConvolutionShape& shape) {
  uint64_t images = (shape.batch.images + shape.lanes - 1) / shape.lanes;
  uint64_t pixelsPerChannel = shape.element == Element::BFLOAT16 ? 4 : 1;
  return images * shape.out.height * shape.out.width >=
         pixelsPerChannel * kj::max(shape.in.channels, shape.out.channels);
}

// Whether our own Winograd is the fastest. Measured on Zen 4 with one thread, with the layers of
// inception-bn-28-small, airbench94 and residual networks, forward and both gradients:
// - oneDNN has a Winograd for floats with AVX-512 only. Ours is 1.0 to 1.4 times as fast on 28×28
//   and larger images, 1.4 to 1.8 times on 14×14, 1.2 to 1.5 times on 7×7, 2 to 2.7 times on 3×3.
// - With AVX2 it is 2.1 to 3.3 times as fast as direct convolutions.
// - Whole steps of inception-bn-28-small are 1.3 times as fast, and 1.25 times with bfloat16.
// - 5×5, measured on Zen 5 with lenet's 20 → 50 channels on 12×12 images: 2.1 times as fast as
//   matrix products, 1.8 times as direct convolutions of bfloat16s, 2.7 times with AVX2.
// Memory sets the limit: with transformed weights of 38 MB (512 → 512 channels) it gains little,
// and networks have many such layers. On sides of 1 and 2 pixels, most of a tile would be waste.
// Images of up to three channels stay plain, because a blocked copy would be mostly padding.
bool winsByWinograd(const ConvolutionShape& shape) {
  constexpr uint64_t WEIGHTS_MAX_BYTES = 16 * 1024 * 1024;
  return isWinogradShape(shape) && shape.in.channels > 3 && shape.out.height >= 3 &&
         shape.out.width >= 3 && winogradWeights_bytes(shape) <= WEIGHTS_MAX_BYTES &&
         hasPixelsForWinograd(shape);
}

// Whether our own loops over plain images are the fastest. With AVX2, oneDNN pads fewer than three
// channels to a block of 8 for the gradient of the weights. Measured on Zen 3 with lenet's 1 → 20
// channels, 5×5 on 28×28 images, our gradient takes an eighth of the time. With three channels,
// both are equally fast (2×2, 3×3 and 7×7).
bool winsByPlanes(const ConvolutionShape& shape) {
  return shape.block == 8 && shape.canBePlain && !shape.inputTrains && shape.in.channels < 3;
}

// Whether the gradient of the weights is wrong in oneDNN 2.6. With bfloat16s, and images smaller
// than the stride, some weights read nothing but padding. oneDNN adds scratch memory to their
// gradient that it did not write.
bool readsStaleMemory(const ConvolutionShape& shape) {
  return shape.element == Element::BFLOAT16 &&
         kj::min(shape.in.width, shape.in.height) < shape.op.stride;
}

}  // namespace

kj::Own<Convolution> makeConvolution(
    ConvolutionShape shape, ConvolutionArrays arrays, dnnl_engine_t engine) {
  if (winsByWinograd(shape)) return makeWinogradConvolution(shape, arrays);
  if (winsByPlanes(shape)) return makePlaneConvolution(shape, arrays);
  if (!isMostlyPadding(shape) && !readsStaleMemory(shape)) {
    KJ_IF_MAYBE(direct, makeDirectConvolution(shape, arrays, engine)) return kj::mv(*direct);
  }
  return makeGemmConvolution(shape, arrays);
}

}  // namespace nn::cpu

#include "nn/cpu/choose_convolution.h"

#include "nn/cpu/direct_convolution.h"
#include "nn/cpu/gemm_convolution.h"

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
  return shape.element == Element::FLOAT && shape.block == 16 && shape.op.kernel > 3 && in > 16 &&
         out > 16 && padded >= 2 * in * out;
}

}  // namespace

kj::Own<Convolution> makeConvolution(
    ConvolutionShape shape, ConvolutionArrays arrays, dnnl_engine_t engine) {
  if (!isMostlyPadding(shape)) {
    KJ_IF_MAYBE(direct, makeDirectConvolution(shape, arrays, engine)) return kj::mv(*direct);
  }
  return makeGemmConvolution(shape, arrays);
}

}  // namespace nn::cpu

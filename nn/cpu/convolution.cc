#include "nn/cpu/convolution.h"

#include <string.h>

namespace nn::cpu {

SumConvolutionGradient::SumConvolutionGradient(const ConvolutionShape& shape,
    const ConvolutionArrays& arrays, size_t weightFloats, size_t sumFloats, uint turn)
    : WholeTask(turn),
      shape(shape),
      arrays(arrays),
      weightFloats(weightFloats),
      sumFloats(sumFloats) {}

void SumConvolutionGradient::runWhole(const Step& step, uint lane) {
  float* sum = step.memory.floatsOf(*arrays.sums, 0);
  for (uint other = 1; other < shape.lanes; ++other) {
    step.kernels.floats.copy(sum + other * sumFloats, sum, Write::ADD, sumFloats);
  }
  unpack(step, lane, sum);
  if (arrays.bias == nullptr) return;
  size_t bytes = shape.out.channels * sizeof(float);
  if (shape.addsBias) {
    memcpy(arrays.biasGradient, sum + weightFloats, bytes);
  } else {
    memset(arrays.biasGradient, 0, bytes);
  }
}

}  // namespace nn::cpu

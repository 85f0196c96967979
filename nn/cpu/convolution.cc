#include "nn/cpu/convolution.h"

#include <string.h>

namespace nn::cpu {

const float* sumLanes(const Step& step, const ConvolutionShape& shape,
    const ConvolutionArrays& arrays, size_t weightFloats, size_t sumFloats) {
  float* sum = step.memory.floatsOf(*arrays.sums, 0);
  for (uint other = 1; other < shape.lanes; ++other) {
    step.kernels.floats.copy(sum + other * sumFloats, sum, Write::ADD, sumFloats);
  }
  if (arrays.bias == nullptr) return sum;
  size_t bytes = shape.out.channels * sizeof(float);
  if (shape.addsBias) {
    memcpy(arrays.biasGradient, sum + weightFloats, bytes);
  } else {
    memset(arrays.biasGradient, 0, bytes);
  }
  return sum;
}

}  // namespace nn::cpu

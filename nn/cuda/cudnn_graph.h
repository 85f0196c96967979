// nn/cuda/cudnn_graph.h: a convolution in cuDNN's words.
#pragma once

#include "nn/cuda/cudnn_descriptor.h"
#include "nn/cuda/device.h"

namespace nn::cuda {

// By which a plan is told the operands: a, b and c of Device::run() in their roles.
enum class Operand : int64_t { X = 1, FILTERS = 2, Y = 3 };
struct Operands {
  Operand a, b, c;
};
Operands operandsOf(Direction direction);

// The graph of one operation, not yet finalized: c = convolution(a, b), in strides of NHWC.
Descriptor convolutionGraph(const ConvolutionProblem& shape, Direction direction);

}  // namespace nn::cuda

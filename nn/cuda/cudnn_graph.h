// nn/cuda/cudnn_graph.h: describes a convolution for cuDNN.
#pragma once

#include "nn/cuda/cudnn_descriptor.h"
#include "nn/cuda/device.h"

namespace nn::cuda {

// The roles of the operands a, b and c of Device::run() in a plan.
enum class Operand : int64_t { X = 1, FILTERS = 2, Y = 3 };
struct Operands {
  Operand a, b, c;
};
Operands operandsOf(Direction direction);

// Returns the graph of one operation, c = convolution(a, b), with images as N×H×W×C. The caller
// finalizes it.
Descriptor convolutionGraph(const ConvolutionProblem& shape, Direction direction);

}  // namespace nn::cuda

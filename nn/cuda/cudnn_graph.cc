#include "nn/cuda/cudnn_graph.h"

#include <kj/debug.h>

namespace nn::cuda {

namespace {

// cuDNN's constants for the attributes of an operation. Each direction has its own.
struct OperationWords {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t x, filters, y, convolution, alpha, beta;
};

OperationWords wordsOf(Direction direction) {
  switch (direction) {
    case Direction::FORWARD:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case Direction::BACKWARD_DATA:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Direction::BACKWARD_FILTERS:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  }
  KJ_UNREACHABLE;
}

cudnnDataType_t typeOf(Element element) {
  switch (element) {
    case Element::FLOAT32:
      return CUDNN_DATA_FLOAT;
    case Element::BFLOAT16:
      return CUDNN_DATA_BFLOAT16;
    case Element::FLOAT16:
      return CUDNN_DATA_HALF;
  }
  KJ_UNREACHABLE;
}

// cuDNN takes dimensions in the order N, C, H, W, whatever the strides are.
Descriptor tensor(Operand operand, Element element, uint images, const BatchLayout& extent) {
  auto row = int64_t(extent.width) * extent.stride;
  const int64_t dimensions[] = {images, extent.channels, extent.height, extent.width};
  const int64_t strides[] = {extent.height * row, 1, row, extent.stride};
  Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, int64_t(operand));
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, typeOf(element));
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, kj::ArrayPtr<const int64_t>(dimensions));
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, kj::ArrayPtr<const int64_t>(strides));
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t(16));
  tensor.finalize();
  return tensor;
}

Descriptor convolution(const ConvolutionProblem& shape) {
  const int64_t ones[] = {1, 1};
  const int64_t strides[] = {shape.stride, shape.stride};
  const int64_t pads[] = {shape.pad, shape.pad};
  Descriptor convolution(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  convolution.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  convolution.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
  convolution.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t(2));
  convolution.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, kj::ArrayPtr<const int64_t>(ones));
  convolution.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, kj::ArrayPtr<const int64_t>(strides));
  convolution.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, kj::ArrayPtr<const int64_t>(pads));
  convolution.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, kj::ArrayPtr<const int64_t>(pads));
  convolution.finalize();
  return convolution;
}

}  // namespace

Operands operandsOf(Direction direction) {
  switch (direction) {
    case Direction::FORWARD:
      return {Operand::X, Operand::FILTERS, Operand::Y};
    case Direction::BACKWARD_DATA:
      return {Operand::Y, Operand::FILTERS, Operand::X};
    case Direction::BACKWARD_FILTERS:
      return {Operand::X, Operand::Y, Operand::FILTERS};
  }
  KJ_UNREACHABLE;
}

Descriptor convolutionGraph(const ConvolutionProblem& shape, Direction direction) {
  auto words = wordsOf(direction);
  auto output = direction == Direction::FORWARD ? shape.output : shape.element;
  // Filters are stored like a batch of images, one image per channel of y.
  BatchLayout filters{shape.x.channels, shape.kernelHeight, shape.kernelWidth, shape.x.channels};
  Descriptor operation(words.type);
  operation.set(words.convolution, convolution(shape));
  operation.set(words.x, tensor(Operand::X, shape.element, shape.images, shape.x));
  operation.set(words.filters, tensor(Operand::FILTERS, shape.element, shape.y.channels, filters));
  operation.set(words.y, tensor(Operand::Y, output, shape.images, shape.y));
  operation.set(words.alpha, 1.0f);
  operation.set(words.beta, 0.0f);
  operation.finalize();

  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  return graph;
}

}  // namespace nn::cuda

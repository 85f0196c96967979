// nn/cpu/convolution.h: one conv2d: its tasks, the layouts of its weights, the sums of its
// gradient.
#pragma once

#include <kj/memory.h>
#include <kj/string.h>

#include "nn/cpu/tasks.h"

namespace nn::cpu {

// Whether images come as plain C×H×W pixels or blocked.
enum class Layout { PLAIN, BLOCKED };

// The layouts of the input that the forward pass and the gradient of the weights need.
struct InputLayouts {
  Layout forward;
  Layout weights;
};

// The properties of a convolution, or of a dense layer that is computed as one.
struct ConvolutionShape {
  Conv2d op;
  Shape in;
  Shape out;
  uint kernelHeight, kernelWidth;  // of the window: op.kernel, or the image for a dense layer
  bool canBePlain;                 // whether the input may also be stored as plain floats
  bool inputTrains;                // whether the gradient of the input is needed
  // Whether the bias is added. If there is a bias that is not added, its gradient is 0.
  bool addsBias;
  uint block;
  Element element;  // of values
  Batch batch;
  uint lanes;  // that share it
};

// Where the arrays of a convolution are. The parameters are in the flat arrays (`bias` is null if
// there is none). If a batch norm is folded into them, they are in the buffer `folded`, the bias
// behind the weights. Other buffers are for the weights in the layouts that the tasks need, and for
// the sums of gradients of each lane. Their sizes are known once all tasks are prepared.
struct ConvolutionArrays {
  const float* weights;
  const float* bias;
  float* weightsGradient;
  float* biasGradient;
  Buffer* forwardWeights;
  Buffer* backwardWeights;
  Buffer* sums;
  Buffer* folded = nullptr;

  // The parameters that are packed, in plain order.
  const float* weightsIn(const Addresses& memory) const {
    return folded == nullptr ? weights : memory.floatsOf(*folded, 0);
  }
  const float* biasIn(const Addresses& memory, size_t weightFloats) const {
    return folded == nullptr ? bias : memory.floatsOf(*folded, 0) + weightFloats;
  }
};

// Outlives its tasks.
class Convolution {
public:
  virtual ~Convolution() noexcept(false) = default;

  virtual InputLayouts inputLayouts() const = 0;

  // `scratch` is memory that the task needs while it runs. Its size is known once the task is
  // prepared.
  virtual kj::Own<Task> forward(Place x, Place y, Buffer& scratch) = 0;
  // Adds to sums that belong to one lane.
  virtual kj::Own<Task> backwardWeights(Place x, Place dy, Buffer& scratch) = 0;
  virtual kj::Own<Task> backwardData(Place dy, Place dx, Write write, Buffer& scratch) = 0;
  // Whether backwardData can add to existing values.
  virtual bool canAdd() const = 0;

  // Pack parameters into the layouts of the tasks, and add the sums of all lanes, in their order,
  // into the flat gradient. Make these tasks when all others are prepared. Lane `turn` modulo the
  // number of lanes packs, because the same lane folds batch norms into the weights. The same lane,
  // or all lanes, add the sums.
  virtual kj::Own<BatchTask> packForward(uint turn) = 0;
  virtual kj::Own<BatchTask> packBackward(uint turn) = 0;
  virtual kj::Own<BatchTask> sumGradient(uint turn) = 0;

  // Returns the names of the code that does the work, for tests: oneDNN's names of its primitives
  // ("jit_wino_4x3:avx512_core"), "winograd", "planes", "sgemm" or "amx".
  virtual kj::Array<kj::String> implementations() const = 0;
};

// Adds the sums of the lanes in their order, and writes the gradient of the bias to the flat array.
// Returns the sum of the gradients of the weights. The sum of a lane has `weightFloats` for the
// weights, in the layout of the code that computes it. If the bias is added, the gradient of the
// bias follows them.
const float* sumLanes(const Step& step, const ConvolutionShape& shape,
    const ConvolutionArrays& arrays, size_t weightFloats, size_t sumFloats);

}  // namespace nn::cpu

// nn/cpu/convolution.h: one conv2d: its tasks, its weights in their layouts, its gradient's sums.
#pragma once

#include <kj/memory.h>
#include <kj/string.h>

#include "nn/cpu/tasks.h"

namespace nn::cpu {

// Whether images come as plain C×H×W pixels or blocked.
enum class Layout { PLAIN, BLOCKED };

// Of the input: in the forward pass and for the gradient of the weights.
struct InputLayouts {
  Layout forward;
  Layout weights;
};

struct ConvolutionShape {
  Conv2d op;
  Shape in;
  Shape out;
  // Whether the bias is added; if not and there is one, its gradient is 0.
  bool addsBias;
  uint block;
  Element element;  // of values
  uint images;      // of a batch
  uint lanes;       // that share them
};

// Where its arrays are: the parameters in the flat arrays (null bias if it has none) or, if a batch
// norm is folded into them, in a buffer, the bias behind the weights; and buffers
// for the weights in the layouts that the tasks want, and for each lane's sums of gradients.
// The sizes of the buffers are known once all tasks are prepared.
struct ConvolutionArrays {
  const float* weights;
  const float* bias;
  float* weightsGradient;
  float* biasGradient;
  Buffer* forwardWeights;
  Buffer* backwardWeights;
  Buffer* sums;
  Buffer* folded = nullptr;

  // What is packed, in plain order.
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

  // `scratch` is for what the task needs while it runs; its size is known once the task is
  // prepared.
  virtual kj::Own<Task> forward(Place x, Place y, Buffer& scratch) = 0;
  // Adds to the lane's sums.
  virtual kj::Own<Task> backwardWeights(Place x, Place dy, Buffer& scratch) = 0;
  virtual kj::Own<Task> backwardData(Place dy, Place dx, Write write, Buffer& scratch) = 0;
  // Whether backwardData can add to what is there.
  virtual bool canAdd() const = 0;

  // Parameters to the tasks' layouts; sums of all lanes in their order to the flat gradient.
  // Make them when all tasks are prepared. Lane `turn` modulo the lanes does the work, in packing
  // always: what is folded into the weights was so by it.
  virtual kj::Own<BatchTask> packForward(uint turn) = 0;
  virtual kj::Own<BatchTask> packBackward(uint turn) = 0;
  virtual kj::Own<BatchTask> sumGradient(uint turn) = 0;

  // The names of the code that does the work, to be checked: those that oneDNN gives to its
  // primitives ("jit_wino_4x3:avx512_core"), "winograd" or "sgemm".
  virtual kj::Array<kj::String> implementations() const = 0;
};

// What every Convolution::sumGradient() does: adds up the lanes' sums in their order and writes
// them to the flat gradient. A lane's sum is the weights' gradient in the layout of those who made
// it, then the bias's if it is added.
class SumConvolutionGradient: public WholeTask {
public:
  // `shape` and `arrays` must outlive it. Sizes are those of one lane's sum.
  SumConvolutionGradient(const ConvolutionShape& shape, const ConvolutionArrays& arrays,
      size_t weightFloats, size_t sumFloats, uint turn);

protected:
  void runWhole(const Step& step, uint lane) final;
  // Writes the weights' gradient to the flat array, in plain order.
  virtual void unpack(const Step& step, uint lane, const float* sum) = 0;

private:
  const ConvolutionShape& shape;
  const ConvolutionArrays& arrays;
  size_t weightFloats;
  size_t sumFloats;
};

}  // namespace nn::cpu

// nn/cpu/convolution.h: one conv2d by oneDNN: its primitives, its weights in their layouts, its
// gradient's sums.
#pragma once

#include <kj/memory.h>
#include <kj/string.h>
#include <kj/vector.h>

#include "nn/cpu/tasks.h"

namespace nn::cpu {

// Whether images come as plain C×H×W pixels or blocked.
enum class Layout { PLAIN, BLOCKED };

// The layouts that oneDNN 2.6 has fast code for when the input has few channels.
struct InputLayouts {
  Layout forward;
  Layout weights;
};
InputLayouts inputLayouts(uint channels, uint block);

// What the primitives are made for.
struct ConvolutionShape {
  Conv2d op;
  Shape in;
  Shape out;
  // Of the input, in the forward pass and for the gradient of the weights; see inputLayouts().
  Layout forwardInput;
  Layout weightsInput;
  // Whether the primitives add the bias; if not and there is one, its gradient is 0.
  bool addsBias;
  uint block;
  uint lanes;
};

// Where its arrays are: the parameters in the flat arrays (null bias if it has none), and buffers
// for the weights in the layouts that the primitives want, and for each lane's sums of gradients.
// The sizes of the buffers are known once all tasks are prepared.
struct ConvolutionArrays {
  const float* weights;
  const float* bias;
  float* weightsGradient;
  float* biasGradient;
  Buffer* forwardWeights;
  Buffer* backwardWeights;
  Buffer* sums;
};

// Every primitive is made for one thread and one number of images; oneDNN hangs if it is executed
// with another number of threads than it was made with. So make and prepare it with
// omp_set_num_threads(1).
//
// Algorithms: Winograd F(4×4, 3×3) (Lavin and Gray 2015) for 3×3 of stride 1 with more than three
// input channels on AVX-512, direct otherwise.
class Convolution {
public:
  // `engine` outlives it, and is that of the streams it runs on.
  Convolution(ConvolutionShape shape, ConvolutionArrays arrays, dnnl_engine_t engine);
  ~Convolution() noexcept(false);
  KJ_DISALLOW_COPY(Convolution);

  // `scratch` is for what the primitive needs while it runs; its size is known once the task is
  // prepared.
  kj::Own<Task> forward(Place x, Place y, Buffer& scratch);
  // Adds to the lane's sums.
  kj::Own<Task> backwardWeights(Place x, Place dy, Buffer& scratch);
  kj::Own<Task> backwardData(Place dy, Place dx, Write write, Buffer& scratch);
  // Whether backwardData can add to what is there.
  bool canAdd() const;

  // Parameters to the primitives' layouts; sums of all lanes in their order to the flat gradient.
  // Make them when all tasks are prepared. Lane `turn` modulo the lanes does the work.
  kj::Own<BatchTask> packForward(uint turn);
  kj::Own<BatchTask> packBackward(uint turn);
  kj::Own<BatchTask> sumGradient(uint turn);

  // The names that oneDNN gives to the primitives' code ("jit_wino_4x3:avx512_core"), to be
  // checked: one that begins with "ref" is correct and a hundred times too slow.
  kj::ArrayPtr<const kj::String> implementations() const;

private:
  struct Layouts;
  kj::Own<Layouts> layouts;
};

}  // namespace nn::cpu

// nn/cpu/lowering.h: a graph as phases of tasks, with all their memory laid out.
#pragma once

#include <kj/string.h>

#include "nn/cpu/convolution.h"
#include "nn/cpu/dense.h"
#include "nn/cpu/tasks.h"
#include "nn/cpu/units.h"

namespace nn::cpu {

// Each lane runs the tasks one after another on its first chunk, then on its second, …; when all lanes are done,
// they run the batch tasks.
struct PhasePlan {
  kj::Vector<kj::Own<Task>> tasks;
  kj::Vector<kj::Own<BatchTask>> batchTasks;
  kj::Vector<kj::Own<Buffer>> scratch;
  size_t imageFloatsMax = 0;               // of the largest image that a task touches
  kj::Array<kj::Array<const Chunk>> chunks;  // of each lane
};

struct SegmentPlan {
  kj::Vector<kj::Own<BatchTask>> prepareForward;
  kj::Vector<kj::Own<BatchTask>> prepareBackward;  // after a barrier come the phases
  Range forward;                                    // phases
  Range backward;
};

// The flat arrays that tasks read and write, sized as the graph says.
struct FlatArrays {
  kj::ArrayPtr<float> parameters;
  kj::ArrayPtr<float> gradients;
  kj::ArrayPtr<float> statistics;
};

// All that a program runs. Tasks point into it: it does not move once made.
struct Plan {
  kj::Array<SegmentPlan> segments;
  kj::Vector<kj::Own<PhasePlan>> phases;
  kj::Vector<kj::Own<Convolution>> convolutions;
  kj::Vector<kj::Own<DenseLayer>> denseLayers;
  kj::Vector<kj::Own<Norm>> norms;
  kj::Vector<kj::Own<Buffer>> buffers;
  Verdicts verdicts;
  Place logits;
  size_t batchFloats;    // of the memory that all lanes share
  size_t scratchFloats;  // of each lane's
};

// Plans `graph` for batches of `images` shared by `lanes` threads. Call it, like everything that makes oneDNN
// primitives, with omp_set_num_threads(1).
kj::Own<Plan> lowerToPlan(
    const Graph& graph, uint images, uint lanes, const Kernels& kernels, FlatArrays arrays,
    dnnl_engine_t engine);

}  // namespace nn::cpu

// nn/cpu/plan.h: a graph lowered: stages of tasks, and the memory they work in.
#pragma once

#include "nn/cpu/convolution.h"
#include "nn/cpu/dense.h"
#include "nn/cpu/norm.h"
#include "nn/cpu/tasks.h"

namespace nn::cpu {

// Each lane runs the tasks one after another on its first chunk, then on its second, …; when all
// lanes are done, they run the batch tasks.
struct StagePlan {
  kj::Vector<kj::Own<Task>> tasks;
  kj::Vector<kj::Own<BatchTask>> batchTasks;
  kj::Vector<kj::Own<Buffer>> scratch;
  size_t imageValuesMax = 0;                 // of the largest image that a task touches
  kj::Array<kj::Array<const Chunk>> chunks;  // of each lane
};

struct SegmentPlan {
  kj::Vector<kj::Own<BatchTask>> prepareForward;
  kj::Vector<kj::Own<BatchTask>> prepareBackward;  // after a barrier come the stages
  Range forward;                                   // stages
  Range backward;
};

// All that a program runs. Tasks point into it: it does not move once made.
struct ProgramPlan {
  kj::Array<SegmentPlan> segments;
  kj::Vector<kj::Own<StagePlan>> stages;
  kj::Vector<kj::Own<Convolution>> convolutions;
  kj::Vector<kj::Own<DenseLayer>> denseLayers;
  kj::Vector<kj::Own<Norm>> norms;
  kj::Vector<kj::Own<Buffer>> buffers;
  Verdicts verdicts;
  Place logits;
  size_t batch_bytes;    // of the memory that all lanes share
  size_t scratch_bytes;  // of each lane's
};

}  // namespace nn::cpu

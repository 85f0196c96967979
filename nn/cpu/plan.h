// nn/cpu/plan.h: a lowered graph: stages of tasks, and the memory that they work in.
#pragma once

#include "nn/cpu/convolution.h"
#include "nn/cpu/dense.h"
#include "nn/cpu/norm.h"
#include "nn/cpu/tasks.h"

namespace nn::cpu {

// Each lane runs all tasks on its first chunk, then all tasks on its second chunk, and so on. When
// all lanes are done, they run the batch tasks.
struct StagePlan {
  kj::Vector<kj::Own<Task>> tasks;
  kj::Vector<kj::Own<BatchTask>> batchTasks;
  kj::Vector<kj::Own<Buffer>> scratch;
  size_t imageValuesMax = 0;                 // of the largest image that a task touches
  kj::Array<kj::Array<const Chunk>> chunks;  // of each lane
};

// How a segment of the graph runs forward and backward.
struct SegmentPlan {
  // These tasks come first. The stages follow after a barrier.
  kj::Vector<kj::Own<BatchTask>> prepareForward;
  kj::Vector<kj::Own<BatchTask>> prepareBackward;
  Range forward;  // of the plan's stages
  Range backward;
};

// Everything that a program runs. Tasks point into the plan, so it must not move.
struct ProgramPlan {
  bool sharesChunks;  // lanes meet after each task: see Share
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

// nn/cuda/gpu_convolutions.h: the convolutions of a real GPU.
#pragma once

#include "nn/cuda/handles.h"
#include "nn/cuda/planner.h"

namespace nn::cuda {

// All calls are for the GPU that the calling thread has chosen, always the same. Throws what goes
// wrong, in the libraries' words.
class GpuConvolutions {
public:
  // `deviceName` is the driver's. Work goes to `stream`, and what measuring takes for a moment is
  // memory of `device`: both must live longer.
  GpuConvolutions(Device& device, kj::StringPtr deviceName, cudaStream_t stream);
  ~GpuConvolutions() noexcept(false);
  KJ_DISALLOW_COPY(GpuConvolutions);

  // May measure, on `stream`, and remembers what it found in the cache's folder.
  kj::Own<LibraryPlan> plan(const ConvolutionProblem& shape, Direction direction);
  void run(LibraryPlan& plan, const void* a, const void* b, void* c, void* workspace);

private:
  class Stopwatch;
  void close();

  Device& device;
  Handles handles = {};
  kj::Maybe<Planner> planner;  // none only while this is made
};

}  // namespace nn::cuda

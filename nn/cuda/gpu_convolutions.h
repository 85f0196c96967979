// nn/cuda/gpu_convolutions.h: the convolutions of a real GPU.
#pragma once

#include "nn/cuda/handles.h"
#include "nn/cuda/planner.h"

namespace nn::cuda {

// All calls are for the GPU that the calling thread has chosen. It must always be the same one.
// Errors are thrown with the messages of the libraries.
class GpuConvolutions {
public:
  // `deviceName` is the name that the driver has for the device. Work goes to `stream`. Measuring
  // takes memory of `device` for a moment. Both must outlive this object.
  GpuConvolutions(Device& device, kj::StringPtr deviceName, cudaStream_t stream);
  ~GpuConvolutions() noexcept(false);
  KJ_DISALLOW_COPY(GpuConvolutions);

  // May measure plans on `stream`. Remembers the results in the folder of the cache.
  kj::Own<LibraryPlan> plan(const ConvolutionProblem& shape, Direction direction);
  void run(LibraryPlan& plan, const void* a, const void* b, void* c, void* workspace);

private:
  class Stopwatch;
  void close();

  Device& device;
  Handles handles = {};
  kj::Maybe<Planner> planner;  // null only during construction
};

}  // namespace nn::cuda

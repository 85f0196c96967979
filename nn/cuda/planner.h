// nn/cuda/planner.h: chooses the library that computes a convolution on a device, and how.
#pragma once

#include "nn/cuda/cudnn_convolution.h"
#include "nn/cuda/lt_product.h"
#include "nn/cuda/plan_cache.h"

namespace nn::cuda {

// The bytes of the operands of a convolution: see Device::run().
struct OperandBytes {
  size_t a, b, c;
};
OperandBytes operandBytesOf(const ConvolutionProblem& shape, Direction direction);

// Plans the convolutions of one device. One thread at a time.
class Planner {
public:
  // `deviceName` is the kind of device, as its driver names it. Measurements are kept in `folder`.
  // Without `cublasLt` the planner uses cuDNN only.
  Planner(CudnnTarget cudnn, cublasLtContext* cublasLt, kj::StringPtr deviceName,
      kj::Own<const kj::Directory> folder);

  // Returns the plan with which a resumed run has computed so far: see nn/chosen_plans.h. Otherwise
  // the plan that `measure` finds fastest, or found fastest in an earlier run, with a workspace of
  // at most `workspaceMax_bytes`. With `shape.deterministic` it measures nothing, because
  // measurements vary. It then returns the plan that the library prefers, that of cuBLASLt where
  // the convolution is a product. Throws if there is no plan.
  kj::Own<LibraryPlan> plan(const ConvolutionProblem& shape, Direction direction,
      size_t workspaceMax_bytes, Measure measure);

private:
  kj::Own<LibraryPlan> choose(const ConvolutionProblem& shape, Direction direction,
      size_t workspaceMax_bytes, Measure measure, kj::StringPtr key);
  kj::Maybe<kj::Own<LibraryPlan>> named(
      const ConvolutionProblem& shape, Direction direction, kj::StringPtr name) const;

  CudnnTarget cudnn;
  cublasLtContext* cublasLt;
  kj::String surroundings;  // the device and the versions of the libraries, which plans depend on
  PlanCache cache;
};

}  // namespace nn::cuda

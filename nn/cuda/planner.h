// nn/cuda/planner.h: which library does a convolution on a device, and how.
#pragma once

#include "nn/cuda/cudnn_convolution.h"
#include "nn/cuda/lt_product.h"
#include "nn/cuda/plan_cache.h"

namespace nn::cuda {

// Bytes of a convolution's operands: see Device::run().
struct OperandBytes {
  size_t a, b, c;
};
OperandBytes operandBytesOf(const ConvolutionProblem& shape, Direction direction);

// Plans the convolutions of one device. One thread at a time.
class Planner {
public:
  // `deviceName` tells the kind of device, as its driver does. What is found out is kept in
  // `folder`. Without `cublasLt` there is cuDNN alone.
  Planner(CudnnTarget cudnn, cublasLtContext* cublasLt, kj::StringPtr deviceName,
      kj::Own<const kj::Directory> folder);

  // The plan that `measure` finds fastest, or did in an earlier run, with a workspace of at most
  // `workspaceMax_bytes`. With `shape.deterministic` nothing is measured, as then the choice would
  // be chance: it is the one that the library thinks best, cuBLASLt where the convolution is a
  // product. Throws if there is none.
  kj::Own<LibraryPlan> plan(const ConvolutionProblem& shape, Direction direction,
      size_t workspaceMax_bytes, Measure measure);

private:
  kj::Maybe<kj::Own<LibraryPlan>> named(
      const ConvolutionProblem& shape, Direction direction, kj::StringPtr name) const;

  CudnnTarget cudnn;
  cublasLtContext* cublasLt;
  kj::String surroundings;  // what decides, beside the convolution
  PlanCache cache;
};

}  // namespace nn::cuda

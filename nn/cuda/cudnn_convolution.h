// nn/cuda/cudnn_convolution.h: plans for convolutions by cuDNN.
#pragma once

#include <kj/one-of.h>

#include "nn/cuda/cudnn_descriptor.h"
#include "nn/cuda/library_plan.h"

namespace nn::cuda {

// The device that plans are made for: the device of a handle, or a device that is described by its
// properties. This machine does not need to have the described device.
using CudnnTarget = kj::OneOf<cudnnHandle_t, Descriptor>;

// Properties of a device, from their JSON as cuDNN writes it: CUDNN_ATTR_DEVICEPROP_JSON_….
Descriptor describedDevice(kj::StringPtr json);

// An engine of cuDNN, with its knobs, for one convolution.
class CudnnPlan final: public LibraryPlan {
public:
  // Makes a plan from the configuration of an engine. Null if cuDNN cannot.
  static kj::Maybe<kj::Own<CudnnPlan>> tryToMake(
      const CudnnTarget& target, const Descriptor& configuration, Direction direction);

  // "cudnn 62 2=4 13=0": the global index of the engine, and its knobs by their types. There are no
  // knobs if the library chooses them.
  kj::StringPtr name() const override { return nameText; }
  size_t workspace_bytes() const override { return workspaceSize_bytes; }
  kj::Maybe<kj::String> run(
      const Handles& handles, const void* a, const void* b, void* c, void* workspace) override;

  // cuDNN's notes about the engine, for people: "tensor cores, compiled at run time".
  kj::StringPtr notes() const { return notesText; }
  // The plan in cuDNN's storage format.
  kj::String json() const;

  CudnnPlan(Descriptor plan, Direction direction, kj::String name, kj::String notes);

private:
  Descriptor plan;
  Direction direction;
  kj::String nameText;
  kj::String notesText;
  size_t workspaceSize_bytes;
};

// Returns at most `most` plans that need at most `workspaceMax_bytes`, or none if cuDNN has none.
// The plans that cuDNN's heuristics expect to be fastest come first, then its fallbacks. All plans
// add in float32. With `shape.deterministic`, each computes the same bits every time. Without
// `shape.tensorFloats`, none rounds factors of float32 to TF32. Throws if there is no such
// convolution.
kj::Array<kj::Own<CudnnPlan>> cudnnPlans(const CudnnTarget& target, const ConvolutionProblem& shape,
    Direction direction, size_t workspaceMax_bytes = kj::maxValue, uint most = kj::maxValue);

// Returns the plan with this name. Null if cuDNN has no such plan, or can no longer make it.
kj::Maybe<kj::Own<CudnnPlan>> cudnnPlanNamed(const CudnnTarget& target,
    const ConvolutionProblem& shape, Direction direction, kj::StringPtr name);

}  // namespace nn::cuda

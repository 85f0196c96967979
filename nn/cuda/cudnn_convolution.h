// nn/cuda/cudnn_convolution.h: convolutions as cuDNN does them.
#pragma once

#include <kj/one-of.h>

#include "nn/cuda/cudnn_descriptor.h"
#include "nn/cuda/library_plan.h"

namespace nn::cuda {

// What plans are made for: the device of a handle, or one that need not be here, by its properties.
using CudnnTarget = kj::OneOf<cudnnHandle_t, Descriptor>;

// Properties of a device, from their JSON as cuDNN writes it: CUDNN_ATTR_DEVICEPROP_JSON_….
Descriptor describedDevice(kj::StringPtr json);

// An engine of cuDNN's, with its knobs, for one convolution.
class CudnnPlan final: public LibraryPlan {
public:
  // Of an engine's configuration; null if it cannot be had.
  static kj::Maybe<kj::Own<CudnnPlan>> tryToMake(
      const CudnnTarget& target, const Descriptor& configuration, Direction direction);

  // "cudnn 62 2=4 13=0": the engine's global index, and its knobs by their types; none if the
  // library chooses them.
  kj::StringPtr name() const override { return nameText; }
  size_t workspace_bytes() const override { return workspaceSize_bytes; }
  kj::Maybe<kj::String> run(
      const Handles& handles, const void* a, const void* b, void* c, void* workspace) override;

  // What cuDNN says of the engine, for people: "tensor cores, compiled at run time".
  kj::StringPtr notes() const { return notesText; }
  // The plan as cuDNN would store it.
  kj::String json() const;

  CudnnPlan(Descriptor plan, Direction direction, kj::String name, kj::String notes);

private:
  Descriptor plan;
  Direction direction;
  kj::String nameText;
  kj::String notesText;
  size_t workspaceSize_bytes;
};

// At most `most` plans that need at most `workspaceMax_bytes`, those first that cuDNN's heuristics
// think fastest, then those that it falls back to; none if it has none. None sums halves in less
// than float32; with `shape.deterministic` all give the same bits every time; without
// `shape.tensorFloats` floats are multiplied as floats. Throws if there is no such convolution.
kj::Array<kj::Own<CudnnPlan>> cudnnPlans(const CudnnTarget& target, const ConvolutionProblem& shape,
    Direction direction, size_t workspaceMax_bytes = kj::maxValue, uint most = kj::maxValue);

// The plan that had this name; null if it is none of cuDNN's, or cannot be made any more.
kj::Maybe<kj::Own<CudnnPlan>> cudnnPlanNamed(const CudnnTarget& target,
    const ConvolutionProblem& shape, Direction direction, kj::StringPtr name);

}  // namespace nn::cuda

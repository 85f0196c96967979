// nn/cuda/library_plan.h: one way in which a library can do a convolution.
#pragma once

#include "nn/cuda/device.h"

namespace nn::cuda {

struct Handles;  // handles.h

class LibraryPlan: public ConvolutionPlan {
public:
  // Under which the library makes the same plan again, for the same shape, direction, kind of
  // device and version. In one line.
  virtual kj::StringPtr name() const = 0;

  // Asks for the work; operands as for Device::run(), each aligned to 16 bytes, `workspace` to 256.
  // Null, or the library's word for why it did not take it.
  virtual kj::Maybe<kj::String> run(
      const Handles& handles, const void* a, const void* b, void* c, void* workspace) = 0;
};

}  // namespace nn::cuda

// nn/cuda/library_plan.h: one way in which a library can compute a convolution.
#pragma once

#include "nn/cuda/device.h"

namespace nn::cuda {

struct Handles;  // handles.h

// A plan that the device can find again by its name.
class LibraryPlan: public ConvolutionPlan {
public:
  // Returns the name of the plan, in one line. From this name the library makes the same plan
  // again, for the same convolution, direction, kind of device and version.
  virtual kj::StringPtr name() const = 0;

  // Asks for the work. Operands are as for Device::run(), each aligned to 16 bytes, `workspace` to
  // 256. Returns null, or the message of the library if it refused.
  virtual kj::Maybe<kj::String> run(
      const Handles& handles, const void* a, const void* b, void* c, void* workspace) = 0;
};

}  // namespace nn::cuda

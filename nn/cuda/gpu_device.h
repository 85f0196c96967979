// nn/cuda/gpu_device.h: a real GPU.
#pragma once

#include "nn/cuda/device.h"

namespace nn::cuda {

// GPU `number`, counted as the driver does. Throws FAILED, with a sentence for the user, if there
// is none or its libraries cannot be loaded. May be called by several threads one after another.
// Waits sleep, rather than spin.
kj::Own<Device> newGpuDevice(uint number);

}  // namespace nn::cuda

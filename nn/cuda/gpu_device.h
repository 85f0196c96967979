// nn/cuda/gpu_device.h: a real GPU.
#pragma once

#include "nn/cuda/device.h"

namespace nn::cuda {

// Opens GPU `number`, counted as the driver does. Throws FAILED, with a sentence for the user, if
// there is no such GPU or its libraries cannot be loaded. Several threads may call it, but not at
// the same time. A thread that waits for the device sleeps rather than spins.
kj::Own<Device> newGpuDevice(uint number);

}  // namespace nn::cuda

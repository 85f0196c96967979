// A program that was built without CUDA.
#include <kj/debug.h>

#include "nn/cuda/gpu_device.h"

namespace nn::cuda {

kj::Own<Device> newGpuDevice(uint) {
  KJ_UNREACHABLE;  // presence() has said that there is none
}

}  // namespace nn::cuda

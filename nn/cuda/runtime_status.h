// nn/cuda/runtime_status.h: errors of the CUDA runtime.
#pragma once

#include <cuda_runtime_api.h>
#include <kj/string.h>

namespace nn::cuda {

// Throws if `status` is an error. The message names the GPU of this thread, the failed operation,
// and the runtime's reason. Records a GPU that has failed: see nn/lost_device.h.
void check(cudaError_t status, kj::StringPtr what);

}  // namespace nn::cuda

// nn/cuda/cuda.h: the backend for NVIDIA's GPUs.
#pragma once

#include "nn/program.h"

namespace nn::cuda {

// Lowers for GPU number options.device: see program.h. Throws FAILED, with a sentence for the user,
// if this machine or this program cannot compute on it (see presence.h). options.threads mean
// nothing to it, and it notes no profile.
extern const Backend CUDA;

}  // namespace nn::cuda

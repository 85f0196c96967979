// nn/cuda/cuda.h: the backend for NVIDIA's GPUs.
#pragma once

#include "nn/program.h"

namespace nn::cuda {

// Lowers for GPU number options.device: see program.h. Throws FAILED, with a sentence for the user,
// if this machine or this program cannot compute on that GPU (see presence.h). Ignores
// options.threads and options.profile.
extern const Backend CUDA;

}  // namespace nn::cuda

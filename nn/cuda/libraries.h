// nn/cuda/libraries.h: NVIDIA's libraries that the CUDA backend calls, opened at run time.
#pragma once

#include <kj/string.h>

namespace nn::cuda {

// Finds cuBLASLt and cuDNN (see shared_library.h), and makes the functions callable that this
// folder's BUILD names. Returns null on success. Otherwise returns a sentence with the missing
// library, the places that were searched, and what to do. The first call decides for the process.
// Any thread.
kj::Maybe<kj::String> loadLibraries();

}  // namespace nn::cuda

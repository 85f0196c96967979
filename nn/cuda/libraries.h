// nn/cuda/libraries.h: NVIDIA's libraries that the CUDA backend calls, opened at run time.
#pragma once

#include <kj/string.h>

namespace nn::cuda {

// Finds cuBLASLt and cuDNN (see shared_library.h) and makes their functions callable: those that
// this folder's BUILD names. Null if all are there, else a sentence that says which is not, where
// it was sought, and the way out. The first call decides for the process; any thread.
kj::Maybe<kj::String> loadLibraries();

}  // namespace nn::cuda

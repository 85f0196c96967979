// runner/weights/mxnet_params.h: the files in which MXNet keeps parameters (`.params`).
#pragma once

#include <kj/array.h>

#include "runner/checkpoints/safetensors.h"

namespace runner {

// Whether a file with these bytes begins as MXNet's lists of arrays do.
bool isMxnetParams(kj::ArrayPtr<const kj::byte> bytes);

// Returns the arrays of a file that MXNet has written (NDArray::Save in its src/ndarray/ndarray.cc:
// versions 1, 2 and 3 of its arrays, and the oldest arrays, which have no version), in the order of
// the file. The names lack the prefixes `arg:` and `aux:`. The types are F32, F64, F16 and BF16,
// and the values may be unaligned. The result refers to `bytes`.
//
// Throws with the cause if the bytes are not such a file, or are cut short. Also throws if an array
// is sparse, has another type, has no values or no name, or has the same name as another array.
kj::Array<FoundTensor> mxnetArraysIn(kj::ArrayPtr<const kj::byte> bytes);

}  // namespace runner

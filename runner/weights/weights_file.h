// runner/weights/weights_file.h: opens a file of weights as arrays with names, whichever system has
// written it.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "runner/checkpoints/safetensors.h"

namespace runner {

// A file of weights.
struct WeightsFile {
  kj::String path;
  kj::Array<const kj::byte> bytes;  // the mapped file
  kj::Array<FoundTensor> arrays;    // refer to `bytes`
  kj::Array<FoundNote> notes;  // texts in its header: see docs/formats/weights.md. MXNet has none

  // Returns the text of this name. Null if the file does not have it.
  kj::Maybe<kj::StringPtr> note(kj::StringPtr name) const;
};

// Opens the file at `path`, which has safetensors' format, or is MXNet's list of arrays
// (`.params`). If `path` is the folder of a run, opens its last weights. Throws, with the path and
// what to do, if the file does not exist, if it cannot be read, or if it is the weights of a
// finished run but holds other values than the run recorded.
WeightsFile openWeights(kj::StringPtr path);

}  // namespace runner

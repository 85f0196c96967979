// runner/experiment/start_weights.h: the trained weights that a run starts from.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "configs/language/reader.h"

namespace runner {

// The keys `weights` and `skip` of [model].
struct StartWeights {
  kj::String path;             // of a file of weights, or of the folder of a run
  configs::Span span;          // of `weights`
  kj::Array<kj::String> skip;  // names of arrays that are not taken; `*` matches any characters
  configs::Span skipSpan;

  // Reads the keys. Null if the file has no `weights`.
  static kj::Maybe<StartWeights> read(configs::Reader& reader);
};

// Returns the path of the weights that `path` names: that file, or the last weights of that run.
// Throws, and says what to do, if the file does not exist.
kj::String weightsPathOf(kj::StringPtr path);

// Returns the SHA-256 of that file, in hexadecimal. Throws as weightsPathOf() does.
kj::String weightsSha256(const StartWeights& start);

}  // namespace runner

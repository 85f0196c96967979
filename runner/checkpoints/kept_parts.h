// runner/checkpoints/kept_parts.h: parts as a checkpoint stores them, without the parameters that
// its file of weights also has. Pure.
#pragma once

#include <kj/array.h>

#include "rpc/placement.h"
#include "runner/checkpoints/safetensors.h"

namespace runner {

using kj::uint;

// The last array of a shard's part: its share of the parameters. If the workers compute with the
// same values, the file of weights has them, and the part's file lacks this array.
constexpr kj::StringPtr SHARD_VALUES = "shard.values"_kj;

// A part without its last array, as a file.
struct KeptPart {
  kj::Array<kj::byte> head;
  kj::ArrayPtr<const kj::byte> values;  // refer to the part
};

// Returns `part`, whose contents are `contents`, without its last array if this has the name
// `last`. Throws if its arrays are not in order.
KeptPart withoutLast(
    kj::ArrayPtr<const kj::byte> part, const FoundContents& contents, kj::StringPtr last);

// A part that is put together from files.
struct WholePart {
  kj::Array<kj::byte> head;
  // All bytes of the part, one piece after the other. They refer to `head` and to the files.
  kj::Array<kj::ArrayPtr<const kj::byte>> pieces;
};

// Returns the whole part of `shard`. Takes its values from the file of weights if the part's own
// `file` lacks them. Throws if neither has them.
WholePart wholeShard(kj::ArrayPtr<const kj::byte> file, kj::ArrayPtr<const kj::byte> weights,
    const rpc::Placement& placement, uint shard);

}  // namespace runner

// runner/roles/part_transfer.h: parts of a checkpoint on their way between a role and the
// coordinator, piece by piece.
#pragma once

#include <kj/array.h>
#include <kj/async.h>

#include "runner/checkpoints/saved_part.h"
#include "runner/logs/job.capnp.h"

namespace runner {

using kj::uint;

// Which part of a checkpoint.
struct PartName {
  Part kind;
  uint index;  // rank, or shard

  bool operator==(const PartName&) const = default;
  // Returns the name of its file.
  kj::String file() const;
};

// Sends a part that was kept at `step`.
kj::Promise<void> sendPart(Session::Client session, uint64_t step, PartName name, SavedPart part);

// Fetches a part of the checkpoint from which the run is continued.
kj::Promise<kj::Array<kj::byte>> fetchPart(Session::Client session, PartName name);

// Writes to `results` the piece of the file at `path` that begins at `offset`. Throws with path and
// cause.
void readPiece(kj::StringPtr path, uint64_t offset, Session::SavedPartResults::Builder results);

}  // namespace runner

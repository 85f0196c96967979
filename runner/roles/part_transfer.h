// runner/roles/part_transfer.h: transfers parts of a checkpoint between a role and the coordinator,
// piece by piece.
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

// The name of the last array in a worker's part: the parameters that the worker computes with. The
// part lacks this array if the shards hold the same values. A checkpoint has these parameters in
// its file of weights, and not in the file of the part.
constexpr kj::StringPtr SENT_PARAMETERS = "parameters"_kj;

// A part that comes in, piece by piece.
struct IncomingPart {
  PartName name;
  kj::Array<kj::byte> bytes;
  uint64_t received = 0;

  bool isWhole() const { return bytes != nullptr && received == bytes.size(); }
  // Takes the next piece. Throws if it is not the next one, or if the part has more than `most`
  // bytes.
  void take(Session::SavePartParams::Reader piece, uint64_t most);
};

// Sends the part of a checkpoint of step `step`.
kj::Promise<void> sendPart(Session::Client session, uint64_t step, PartName name, SavedPart part);

// Fetches a part of the checkpoint from which the run is continued.
kj::Promise<kj::Array<kj::byte>> fetchPart(Session::Client session, PartName name);

// Writes to `results` the piece of the file at `path` that begins at `offset`. Throws with path and
// cause.
void readPiece(kj::StringPtr path, uint64_t offset, Session::SavedPartResults::Builder results);
// Does the same for a part in memory, which consists of `pieces`. Returns whether this was the last
// piece of the part that a role has to fetch.
bool copyPiece(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces, uint64_t offset,
    Session::SavedPartResults::Builder results);

}  // namespace runner

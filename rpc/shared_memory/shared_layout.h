// rpc/shared_memory/shared_layout.h: the layout of the memory that workers and servers on one
// machine share.
#pragma once

#include <kj/array.h>

#include "rpc/placement.h"
#include "rpc/rounds.h"
#include "rpc/shared_memory/ring.h"
#include "rpc/shared_memory/shared_memory.h"

namespace rpc {

// The rings and flags through which a worker and a server communicate.
struct Channel {
  RingMemory pushes;        // from the worker
  RingMemory answers;       // from the server
  NoteCount& serverSleeps;  // an eventfd wakes the server
  NoteCount& workerSleeps;  // the same word for all servers of a worker; a futex wakes the worker
};

// A worker's memory: a word that says whether it sleeps, a channel per server of the placement, and
// on the next page the flat array of gradients. The worker has at most one push in flight per
// slice, so a ring with one note per slice of its server is never full.
class WorkerLayout {
public:
  explicit WorkerLayout(const Placement& placement);

  uint64_t bytes() const { return gradientsAt + gradients_bytes; }
  Channel channel(kj::ArrayPtr<kj::byte> memory, uint shard) const;
  kj::ArrayPtr<float> gradients(kj::ArrayPtr<kj::byte> memory) const;

private:
  kj::Array<uint64_t> channelsAt;
  kj::Array<uint> capacities;  // per shard: notes in each ring
  uint64_t gradientsAt;
  uint64_t gradients_bytes;
};

// Makes the memory of a worker.
kj::Own<SharedMemory> newWorkerMemory(const Placement& placement);

// A server's memory: the buffers of its slices, each with room for one version of a slice. A slice
// has as many buffers as a Shard can need. Unused buffers cost nothing. First come the first
// buffers of all slices, then the second ones, and so on.
class ServerLayout {
public:
  ServerLayout(const Placement& placement, uint shard, const Rounds& rounds);

  uint64_t bytes() const { return buffers * stride_bytes; }
  // Returns a buffer of the shard's slice `id`. It begins on a cache line.
  kj::ArrayPtr<float> values(kj::ArrayPtr<kj::byte> memory, SliceId id, uint buffer) const;
  // Returns how many buffers each slice has.
  uint count() const { return buffers; }

private:
  const Placement& placement;
  uint buffers;                 // of each slice
  uint64_t stride_bytes;        // from a buffer to the slice's next one
  kj::Array<uint64_t> offsets;  // per slice of the placement: where its first buffer begins
};

}  // namespace rpc

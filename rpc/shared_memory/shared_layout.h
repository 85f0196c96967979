// rpc/shared_memory/shared_layout.h: what lies where in the memory that workers and servers of a
// machine share.
#pragma once

#include <kj/array.h>

#include "rpc/placement.h"
#include "rpc/rounds.h"
#include "rpc/shared_memory/ring.h"
#include "rpc/shared_memory/shared_memory.h"

namespace rpc {

// What a worker and a server say to each other.
struct Channel {
  RingMemory pushes;        // the worker's
  RingMemory answers;       // the server's
  NoteCount& serverSleeps;  // then an eventfd wakes it
  NoteCount& workerSleeps;  // the same word for all servers of a worker; a futex
};

// A worker's memory: a word that says that it sleeps, a channel for each server of the placement,
// then from a page's border the flat array of gradients. The worker has at most one push in flight
// on a slice, so a ring with a note for each slice of its server is never full.
class WorkerLayout {
public:
  explicit WorkerLayout(const Placement& placement);

  uint64_t bytes() const { return gradientsAt + gradients_bytes; }
  Channel channel(kj::ArrayPtr<kj::byte> memory, uint shard) const;
  kj::ArrayPtr<float> gradients(kj::ArrayPtr<kj::byte> memory) const;

private:
  kj::Array<uint64_t> channelsAt;
  kj::Array<uint> capacities;  // notes, of each shard's rings
  uint64_t gradientsAt;
  uint64_t gradients_bytes;
};

// New memory of a worker.
kj::Own<SharedMemory> newWorkerMemory(const Placement& placement);

// A server's memory: planes, each of which has room for one version of each of its slices. As many
// as a Shard can need; those that it does not use cost nothing.
class ServerLayout {
public:
  ServerLayout(const Placement& placement, uint shard, const Rounds& rounds);

  uint64_t bytes() const { return planes * plane_bytes; }
  // Slice `id` of the shard in a plane; begins on a cache line.
  kj::ArrayPtr<float> values(kj::ArrayPtr<kj::byte> memory, SliceId id, uint plane) const;
  uint count() const { return planes; }

private:
  const Placement& placement;
  uint planes;
  uint64_t plane_bytes;
  kj::Array<uint64_t> offsets;  // of each slice of the placement in a plane; bytes
};

}  // namespace rpc

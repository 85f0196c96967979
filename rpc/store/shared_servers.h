// rpc/store/shared_servers.h: the worker's end of sessions whose pushes go through shared memory.
#pragma once

#include <kj/async.h>
#include <kj/function.h>
#include <kj/io.h>
#include <kj/vector.h>

#include "rpc/kvstore.capnp.h"
#include "rpc/placement.h"
#include "rpc/rounds.h"
#include "rpc/shared_memory/shared_layout.h"
#include "rpc/shared_memory/shared_memory.h"
#include "rpc/store/remote_store.h"

namespace rpc {

// A worker's memory, and the servers that share it. The io thread meets them; from then on the
// compute thread alone speaks with them, through rings, and copies values from where they keep
// them.
class SharedServers {
public:
  // `memory` is the worker's: see WorkerLayout. It and `placement` outlive this.
  SharedServers(const Placement& placement, const Rounds& rounds, SharedMemory& memory);
  KJ_DISALLOW_COPY(SharedServers);

  // Before anything is pushed: records when pushes of worker `rank` are written and their answers
  // copied. `lane` is the compute thread's, and outlives this.
  void traceTo(TraceLane& lane, uint rank);

  // On the io thread, before the compute thread pushes: offers the memory to server `shard`.
  // Resolves to whether it is shared now; rejects if the server refuses.
  kj::Promise<bool> meet(uint shard, ShardSession::Client session);

  bool has(uint shard) const { return servers[shard] != nullptr; }

  // The rest is for the compute thread.

  // The gradient of a slice, whose server it has(), is complete for `step`. The server hears of it
  // when tell() is called, or before.
  void push(SliceId id, uint64_t step);
  void tell();

  // Copies the answers to the pushes of `step` - 1, of those slices of the range whose servers it
  // has(), to `parameters` as they come, and waits for those that are missing. Before it sleeps it
  // calls `check`, which may throw: whoever makes a new reason for that calls sleeper().wake()
  // then. Returns whether it copied any.
  bool await(SliceRange slices, uint64_t step, kj::ArrayPtr<float> parameters,
      kj::FunctionParam<void()> check);

  // Adds what was answered and copied since the last call, for each server.
  void account(kj::ArrayPtr<RemoteStore::Traffic> traffic);
  // The highest version of slice 0 that was copied.
  uint64_t updates() const { return newest; }

  // The compute thread, while it waits in await(). Any thread may wake it.
  const Sleeper& sleeper() const { return own; }

private:
  // A server as the compute thread sees it.
  struct Server {
    kj::Own<SharedMemory> memory;
    kj::AutoCloseFd bell;
    ServerLayout layout;
    RingWriter pushes;
    RingReader answers;
    Sleeper sleeper;
    bool isUntold = false;         // pushes were written since it was last looked after
    RemoteStore::Traffic traffic;  // not accounted for
  };

  // A slice's last push.
  struct LastPush {
    uint64_t pushed = 0;                                // steps that were pushed
    uint64_t answered = 0;                              // steps whose push was answered
    uint64_t copied = 0;                                // steps whose answer is in `parameters`
    kj::TimePoint begun = kj::origin<kj::TimePoint>();  // when the last push was written
    Note answer;                                        // the last one
  };

  void open(uint shard, int values, int bell);
  void take(uint shard, Server& server, const Note& note);
  bool takeAll();
  void copy(SliceId id, kj::ArrayPtr<float> parameters);

  void record(Mark station, uint64_t step, SliceId id);

  const Placement& placement;
  const Rounds rounds;
  SharedMemory& memory;
  const WorkerLayout layout;
  const kj::MonotonicClock& clock = kj::systemPreciseMonotonicClock();
  Sleeper own;
  kj::Array<kj::Maybe<kj::Own<Server>>> servers;
  kj::Array<LastPush> lastPushes;  // of each slice of the placement
  uint64_t newest = 0;
  kj::Maybe<TraceLane&> trace;
  uint tracedRank = 0;
};

}  // namespace rpc

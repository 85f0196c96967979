// rpc/store/shared_servers.h: the worker's end of sessions that push through shared memory.
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

// A worker's memory, and the servers that share it. The io thread opens the sharing. From then on
// only the compute thread communicates with these servers: it uses rings, and copies values from
// the servers' memory.
class SharedServers {
public:
  // `memory` is the worker's (see WorkerLayout). It and `placement` must outlive this object.
  SharedServers(const Placement& placement, const Rounds& rounds, SharedMemory& memory);
  KJ_DISALLOW_COPY(SharedServers);

  // Before the first push: records when pushes of worker `rank` are written, and when their answers
  // are copied. `lane` belongs to the compute thread, and must outlive this object.
  void traceTo(TraceLane& lane, uint rank);

  // On the io thread, before the compute thread pushes: offers the memory to server `shard`.
  // Resolves to whether it is shared now. Rejects if the server refuses.
  kj::Promise<bool> share(uint shard, ShardSession::Client session);

  // Whether server `shard` shares the memory.
  bool has(uint shard) const { return servers[shard] != nullptr; }

  // The rest is for the compute thread.

  // Before the first push: continues after `steps` steps that were pushed, answered and copied.
  void resumeAfter(uint64_t steps) {
    for (auto& last: lastPushes) last.pushed = last.answered = last.copied = steps;
  }

  // Pushes the gradient of a slice, which is complete for `step`. has() must be true of its server.
  // A server that sleeps sees the push only after wakeServers().
  void push(SliceId id, uint64_t step);
  // Wakes servers that sleep and have new pushes.
  void wakeServers();

  // Waits for the answers to the pushes of `step` - 1, and copies them to `parameters` as they
  // arrive. Leaves out slices of the range whose servers do not share the memory. Returns whether
  // it copied any. Calls `check`, which may throw, before it sleeps. A thread that makes `check`
  // throw must then call sleeper().wakeAfterLoss().
  bool await(SliceRange slices, uint64_t step, kj::ArrayPtr<float> parameters,
      kj::FunctionParam<void()> check);

  // Adds the traffic of the pushes that were answered and copied since the last call to `traffic`,
  // per server.
  void addTraffic(kj::ArrayPtr<RemoteStore::Traffic> traffic);
  // The highest version of slice 0 that was copied.
  uint64_t updates() const { return newest; }

  // Represents the compute thread while it waits in await(). Any thread may wake it.
  const Sleeper& sleeper() const { return own; }

private:
  // The compute thread's record of a server.
  struct Server {
    kj::Own<SharedMemory> memory;
    kj::AutoCloseFd bell;
    ServerLayout layout;
    RingWriter pushes;
    RingReader answers;
    Sleeper sleeper;
    bool hasNewPushes = false;     // pushes were written since wakeServers()
    RemoteStore::Traffic traffic;  // since the last addTraffic()
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

  void record(TracePoint station, uint64_t step, SliceId id);

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

// rpc/shard/shard_server.h: serves a Shard over Cap'n Proto.
#pragma once

#include <kj/async-unix.h>
#include <kj/async.h>
#include <kj/memory.h>

#include "rpc/kvstore.capnp.h"
#include "rpc/placement.h"
#include "rpc/rounds.h"
#include "rpc/shard/shard.h"
#include "rpc/trace.h"

namespace rpc {

// Makes the event loop of a server poll sockets and timers after about every call. By default, KJ
// polls them only when it has nothing else to do. While one worker's pushes wait, the server would
// then neither read other connections nor send heartbeats, however long the updates take.
inline void pollOften(kj::WaitScope& scope) {
  scope.setBusyPollInterval(20);
}

// Changes the members of a job on the server of a shard: see Shard::fence().
class ShardMembers {
public:
  virtual ~ShardMembers() noexcept(false) = default;

  // Worker `rank` was lost: refuses it from now on. Returns how many steps it has pushed of each
  // slice.
  virtual kj::Array<Shard::SliceSteps> fence(uint rank) = 0;
  // Lets rounds close without worker `rank`, and answers the workers that waited for them.
  virtual void leave(uint rank) = 0;
  // Worker `rank` becomes a member. Its first step is `step`.
  virtual void admit(uint rank, uint64_t step) = 0;
};

// A shard, and the capability through which workers use it. `shard` and `members` live as long as
// `service`, and are used on its event loop.
struct ServedShard {
  ShardService::Client service;
  Shard& shard;
  ShardMembers& members;
};

// Makes shard `shard`, and the bootstrap capability of its server. The capability checks everything
// in a message before it uses it. A wrong rank, slice, size, step or placement digest is refused
// with an exception to the caller, and changes nothing. All of it runs on the thread of the event
// loop.
//
// With `port`, the event port of that loop, the server shares the memory of its values with workers
// on its machine. With `trace`, used on that thread, it records the progress of pushes.
//
// All arguments must outlive the capability. The capability must outlive the connections that it is
// served over, because answers are sent directly from the shard's memory. serve() ensures that. Its
// owner may save the shard between two calls, and restore it before the first one.
ServedShard newShardServer(const Placement& placement, uint shard, const Rounds& rounds,
    Updater& updater, kj::Maybe<kj::UnixEventPort&> port = nullptr,
    kj::Maybe<ShardTrace&> trace = nullptr);

}  // namespace rpc

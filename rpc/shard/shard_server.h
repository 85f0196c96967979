// rpc/shard/shard_server.h: Cap'n Proto around a Shard.
#pragma once

#include <kj/async-unix.h>
#include <kj/async.h>
#include <kj/memory.h>

#include "rpc/kvstore.capnp.h"
#include "rpc/placement.h"
#include "rpc/rounds.h"
#include "rpc/trace.h"

namespace rpc {

// For the event loop of a server: sockets and timers have their turn after about a call. KJ by
// itself looks at them when there is nothing else to do; while one worker's pushes lie there, the
// others would not be read, and no heartbeat would go, however long the updates take together.
inline void lookOftenAround(kj::WaitScope& scope) {
  scope.setBusyPollInterval(20);
}

// The bootstrap capability of server `shard`. Everything in a message is checked before it is used:
// a wrong rank, slice, size, step or placement digest is refused with an exception to the caller
// and changes nothing. All runs on the thread of the event loop. `updater` and `placement` must
// outlive it, and it must outlive the connections that it is served over (serve() sees to that):
// answers are sent from where the shard keeps its values. With `port`, that of the event loop,
// which must outlive it too, it keeps its values in memory that it shares with workers of its
// machine. To `trace`, of that thread, which outlives it as well, it tells what becomes of pushes.
ShardService::Client newShardServer(const Placement& placement, uint shard, const Rounds& rounds,
    Updater& updater, kj::Maybe<kj::UnixEventPort&> port = nullptr,
    kj::Maybe<ShardTrace&> trace = nullptr);

}  // namespace rpc

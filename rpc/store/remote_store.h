// rpc/store/remote_store.h: the store of a worker whose shards are in other processes.
#pragma once

#include <kj/array.h>
#include <kj/async.h>
#include <kj/exception.h>
#include <kj/function.h>
#include <kj/memory.h>
#include <kj/string.h>
#include <kj/timer.h>

#include "rpc/kvstore.capnp.h"
#include "rpc/placement.h"
#include "rpc/rounds.h"
#include "rpc/shared_memory/shared_memory.h"
#include "rpc/store/kv_store.h"
#include "rpc/trace.h"
#include "rpc/wire/peer.h"

namespace rpc {

// How a worker finds its servers.
struct Servers {
  kj::Array<kj::String> names;  // in the order of shards: "server 1 at 127.0.0.1:4711"
  // Connects to a server, by its index in `names`. Called again when the last connection broke.
  kj::Function<kj::Promise<kj::Own<Peer>>(uint server)> connect;
  kj::Timer& timer;
  kj::Duration patience;  // a server that cannot be reached for this long counts as lost
  // The shard that this worker holds itself, if every worker holds one. It takes the place of the
  // server whose index is the worker's rank, and is called directly.
  kj::Maybe<ShardService::Client> own = nullptr;
  // The step at which the worker became a member of the job. 0: at the beginning.
  uint64_t since = 0;
};

// Whether run() has rejected with `exception` because a server could not be reached for
// Servers::patience. If a server was lost for another reason, its process has ended, and may have
// reported the cause.
bool isUnreachable(const kj::Exception& exception);

// A store whose servers are behind Cap'n Proto connections. The io thread calls run(), and the
// compute thread calls the methods of KvStore. The two threads share a Handover
// (rpc/store/exchange.h).
//
// `placement` and the store must outlive the promise of run(), and so must both arrays: gradients
// are sent directly from `gradients`, and answers are written to `parameters`. `gradients` must
// outlive the connections, too. Therefore end the io thread before the program that owns the
// arrays.
class RemoteStore: public KvStore {
public:
  kj::Maybe<RemoteStore&> remote() override { return *this; }

  // `memory`, if given, holds `gradients` in the layout of WorkerLayout, and servers on this
  // machine read them there (rpc/store/shared_servers.h). It must outlive the store.
  static kj::Own<RemoteStore> create(const Placement& placement, const Rounds& rounds, uint rank,
      kj::ArrayPtr<float> parameters, kj::ArrayPtr<const float> gradients,
      kj::Maybe<SharedMemory&> memory = nullptr);

  // On the io thread, once: connects to the servers (one per shard, in order) and communicates with
  // them until the promise is dropped. Never resolves. Reconnects after a connection broke, and
  // repeats unanswered calls. The values are the same as without the break.
  //
  // Rejects when a server refuses or is lost: nobody listens at its address any more, or it cannot
  // be reached for `patience`. The exception names the server as `names` does, and every wait of
  // the compute thread throws it, too. Dropping the promise fails the store.
  virtual kj::Promise<void> run(Servers servers) = 0;

  // On any thread: makes every present and future wait of the compute thread throw `reason`. Only
  // the first call has an effect.
  virtual void fail(kj::Exception reason) = 0;

  // Before run(): records the journeys of slices to and from the servers. Each thread records what
  // it does. `trace` must outlive the store.
  virtual void traceTo(Trace& trace) = 0;

  // Before run(), if the compute thread is also the io thread: while it waits, it calls `yield`
  // again and again. Each call lets everything else on the thread run for a moment.
  virtual void shareThread(kj::Function<void()> yield) = 0;

  // The traffic with one server so far.
  struct Traffic {
    const char* transport = "";  // in use: tcp, unix, shared_memory or in_process
    // Answered calls with pushes. Through shared memory, each push of a slice is a call. Calls at
    // the start or the end of an epoch do not count: they wait for other roles, and are irrelevant
    // for a step.
    uint64_t calls = 0;
    uint64_t pushed_bytes = 0;  // payload of calls, and gradients in shared memory
    uint64_t pulled_bytes = 0;
    // The sum and the longest of the round trips of `calls`. A round trip begins when the call is
    // handed to the connection, and ends when its answer arrives. Through shared memory, it ends
    // when the compute thread waits for the answer and finds it.
    kj::Duration roundTrips = 0 * kj::NANOSECONDS;
    kj::Duration roundTripMax = 0 * kj::NANOSECONDS;
    uint64_t waitingMax_bytes = 0;  // the most pushes that were ordered, but not sent yet
    uint64_t reconnects = 0;
  };
  // Returns the traffic per server, in order. Any thread.
  virtual kj::Array<Traffic> traffic() const = 0;
};

}  // namespace rpc

// rpc/store/remote_store.h: the store of a worker whose shards are elsewhere.
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
  kj::Array<kj::String> names;  // in their order: "server 1 at 127.0.0.1:4711"
  // Makes a connection to a server, by its place in `names`. May be called again, when the one
  // before broke.
  kj::Function<kj::Promise<kj::Own<Peer>>(uint server)> connect;
  kj::Timer& timer;
  kj::Duration patience;  // a server that cannot be reached for so long is lost
  // The shard that the worker itself holds, in place of a server with its rank: called directly.
  kj::Maybe<ShardService::Client> own = nullptr;
};

// Whether the server that run() lost could not be reached, rather than that it ended: no process
// need have ended that could tell more.
bool isUnreachable(const kj::Exception& exception);

// Servers behind Cap'n Proto connections. Made by anyone; `run` belongs to the io thread, the
// KvStore methods to the compute thread. They meet in one queue of ready ranges and one array of
// answered pushes.
//
// `placement` and the store outlive the promise of run(). `gradients` are sent from where
// they lie and answers are written to `parameters`: both arrays outlive that promise, and
// `gradients` the connections too. So end the io thread before the program that owns the arrays.
class RemoteStore: public KvStore {
public:
  kj::Maybe<RemoteStore&> remote() override { return *this; }

  // With `memory`, which outlives the store, `gradients` are those of WorkerLayout in it, and
  // servers of this machine read them there: rpc/store/shared_servers.h.
  static kj::Own<RemoteStore> create(const Placement& placement, const Rounds& rounds, uint rank,
      kj::ArrayPtr<float> parameters, kj::ArrayPtr<const float> gradients,
      kj::Maybe<SharedMemory&> memory = nullptr);

  // On the io thread, once: connects to the servers (one a shard, in order) and talks to them until
  // the promise is dropped; it never resolves. A connection that breaks is made again, and what it
  // left unanswered is repeated: the values are those of a run without the break. Rejects when a
  // server is lost (nobody listens at its address any more, or it cannot be reached for
  // `patience`) or refuses: the exception names it by its entry in `names` and has also woken the
  // compute thread. Dropping the promise fails the store.
  virtual kj::Promise<void> run(Servers servers) = 0;

  // From any thread: makes every present and future wait of the compute thread throw `reason`. The
  // first reason stays.
  virtual void fail(kj::Exception reason) = 0;

  // Before run(): records the journeys of slices to and from the servers, each at the thread that
  // sees it. `trace` outlives the store.
  virtual void traceTo(Trace& trace) = 0;

  // What went over the connections to one server so far.
  struct Traffic {
    const char* transport = "";  // tcp, unix, shared_memory, in_process: in use
    // Calls with pushes that were answered; through shared memory each slice's push is one. What
    // comes once, at the start or an epoch's end, waits for other roles and says nothing of a step.
    uint64_t calls = 0;
    uint64_t pushed_bytes = 0;  // payload of all calls, and what was read from shared memory
    uint64_t pulled_bytes = 0;
    // From handing such a call to the connection until its answer is there, or, through shared
    // memory, until the compute thread comes to wait for it and finds it: their sum, and the
    // longest.
    kj::Duration roundTrips = 0 * kj::NANOSECONDS;
    kj::Duration roundTripMax = 0 * kj::NANOSECONDS;
    uint64_t waitingMax_bytes = 0;  // of pushes that were ordered, but not handed over: the most
    uint64_t reconnects = 0;
  };
  // Of each server, in order. Any thread.
  virtual kj::Array<Traffic> traffic() const = 0;
};

}  // namespace rpc

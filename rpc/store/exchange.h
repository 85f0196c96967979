// rpc/store/exchange.h: the io thread's half of a worker's store, and where it meets the compute
// thread.
#pragma once

#include <kj/async.h>
#include <kj/mutex.h>
#include <kj/vector.h>

#include "rpc/store/outbox.h"

#include "rpc/store/remote_store.h"
#include "rpc/store/shared_servers.h"

namespace rpc {

// Where the two threads meet.
struct Meeting {
  kj::Vector<Order> orders;
  // There while the io thread has nothing to do: fulfilling it wakes it.
  kj::Maybe<kj::Own<kj::CrossThreadPromiseFulfiller<void>>> bell;
  kj::Array<uint64_t> answered;             // each slice's pushes whose answers are in `parameters`
  uint64_t completed = 0;                   // orders other than pushes
  uint64_t updates = 0;                     // the highest version that came of slice 0
  kj::Maybe<kj::Exception> failure;         // the first
  kj::Array<RemoteStore::Traffic> traffic;  // each server's
  // The compute thread, where it waits for shared memory rather than for this.
  kj::Maybe<const Sleeper&> sleeper;

  void fail(kj::Exception reason) {
    if (failure == nullptr) failure = kj::mv(reason);
    KJ_IF_MAYBE(waits, sleeper) waits->wake();
  }
};

// What both threads see of a worker's store.
struct WorkerSide {
  const Placement& placement;
  const Rounds rounds;
  uint rank;
  kj::ArrayPtr<float> parameters;
  kj::ArrayPtr<const float> gradients;
  kj::Maybe<kj::Own<SharedServers>> shared;
  kj::Maybe<Trace&> trace{};
  kj::MutexGuarded<Meeting> meeting{};

  // Whether pushes to this server go through shared memory, rather than by orders.
  bool sharesWith(uint server) const {
    KJ_IF_MAYBE(servers, shared) return (*servers)->has(server);
    return false;
  }
};

// On the io thread: keeps a session with each server and carries out orders; see
// RemoteStore::run(). `worker` outlives the promise.
kj::Promise<void> exchange(WorkerSide& worker, Servers servers);

}  // namespace rpc

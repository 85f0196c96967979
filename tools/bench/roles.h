// tools/bench/roles.h: what processes of benches are made of, from inside.
#pragma once

#include <kj/function.h>
#include <kj/mutex.h>
#include <kj/thread.h>
#include <kj/vector.h>

#include "rpc/placement.h"
#include "rpc/rounds.h"
#include "rpc/shard/updater.h"
#include "rpc/store/remote_store.h"
#include "tools/bench/kv_case.h"

namespace tools {

// Of a clock that only goes forward.
uint64_t now_ns();

// The nanoseconds that each of so many calls takes.
kj::Vector<uint64_t> timesOf(uint64_t count, kj::FunctionParam<void()> call);

// Carries out the orders that standard input brings, until it closes; what comes back is the
// answer.
void carryOutOrders(kj::FunctionParam<kj::Vector<uint64_t>(const KvOrder&)> carryOut);
// The same, of a role that knows TRIPS and CHECK.
void carryOutOrders(kj::FunctionParam<void()> trip, kj::FunctionParam<void()> check);

// A worker's io thread: talks to the servers of `placement` over the streams that the bench has put
// at FIRST_STREAM, while it lives. Both must outlive it.
class StoreThread {
public:
  StoreThread(rpc::RemoteStore& store, const rpc::Placement& placement);
  ~StoreThread() noexcept(false);
  KJ_DISALLOW_COPY(StoreThread);

private:
  using Stop = kj::Maybe<kj::Own<kj::CrossThreadPromiseFulfiller<void>>>;

  void talk();

  rpc::RemoteStore& store;
  const rpc::Placement& placement;
  kj::MutexGuarded<Stop> stop{nullptr};
  kj::Thread thread;
};

// One shard, at whose FIRST_STREAM are the workers, until all have gone. `shares`: its memory, with
// those that can.
void serveShard(const rpc::Placement& placement, uint shard, const rpc::Rounds& rounds,
    rpc::Updater& updater, bool shares);

}  // namespace tools

// tools/bench/roles.h: the common parts of processes that benches start.
#pragma once

#include <kj/function.h>
#include <kj/mutex.h>
#include <kj/thread.h>
#include <kj/vector.h>

#include "rpc/placement.h"
#include "rpc/rounds.h"
#include "rpc/store/remote_store.h"
#include "tools/bench/kv_processes.h"

namespace tools {

// The time of a monotonic clock.
uint64_t now_ns();

// Returns the nanoseconds of each of `count` calls.
kj::Vector<uint64_t> timesOf(uint64_t count, kj::FunctionParam<void()> call);

// Executes the orders on standard input until it closes. The result of `carryOut` is the answer.
void carryOutOrders(kj::FunctionParam<kj::Vector<uint64_t>(const KvOrder&)> carryOut);
// The same for a role that knows TRIPS and CHECK.
void carryOutOrders(kj::FunctionParam<void()> trip, kj::FunctionParam<void()> check);

// A worker's io thread. While it lives, it communicates with the servers of `placement` over the
// streams that the bench has put at FIRST_STREAM, encrypted with `tls`. The first two arguments
// must outlive it.
class StoreThread {
public:
  StoreThread(rpc::RemoteStore& store, const rpc::Placement& placement, bool tls = false);
  ~StoreThread() noexcept(false);
  KJ_DISALLOW_COPY(StoreThread);

private:
  using Stop = kj::Maybe<kj::Own<kj::CrossThreadPromiseFulfiller<void>>>;

  void talk();

  rpc::RemoteStore& store;
  const rpc::Placement& placement;
  const bool tls;
  kj::MutexGuarded<Stop> stop{nullptr};
  kj::Thread thread;
};

// Serves one shard to the workers at FIRST_STREAM until all have disconnected. With `shares`, it
// shares memory with workers that can. With `tls`, the streams are encrypted.
void serveShard(const rpc::Placement& placement, uint shard, const rpc::Rounds& rounds,
    rpc::Updater& updater, bool shares, bool tls = false);

}  // namespace tools

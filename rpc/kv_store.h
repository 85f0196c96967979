// rpc/kv_store.h: the worker's side of the parameter server, as its compute thread sees it.
#pragma once

#include <kj/array.h>
#include <kj/async.h>
#include <kj/exception.h>
#include <kj/memory.h>

#include "rpc/kvstore.capnp.h"
#include "rpc/placement.h"
#include "rpc/rounds.h"
#include "rpc/updater.h"

namespace rpc {

// A worker's store. Every method is called by the compute thread; ranges are floats of the flat
// array and cover whole keys. Methods throw if the store is lost.
class KvStore {
public:
  virtual ~KvStore() noexcept(false) = default;

  // Every worker calls it once, first. Rank 0's `parameters` become the initial values; returns
  // when they are in everybody's.
  virtual void initialize() = 0;
  // The gradients of this range are complete for `step` (from 0). Returns at once; the range of
  // `gradients` must not change before await() of the same range for step + 1 has returned. The
  // range of `parameters` may change from here until then.
  virtual void push(uint64_t step, uint64_t begin, uint64_t end) = 0;
  // Waits until `parameters` hold in this range what `step` may compute on: the answer to this
  // worker's push of step - 1, so that must have been pushed. (The mode says what the answer waits
  // for: see kvstore.capnp.)
  virtual void await(uint64_t step, uint64_t begin, uint64_t end) = 0;
  // At the end of an epoch: waits until every push of this worker was answered. From then until its
  // next push no other worker waits for it, so every worker must call this before any pushes again.
  virtual void rest() = 0;
  // Fetches the newest values of everything: when all workers rest, all then hold the same.
  virtual void refresh() = 0;
  // How many updates the newest values that this worker has received hold, of the first slice of
  // the placement; 0 before any. Where every worker's gradient makes a round, that is the number of
  // this worker's answered steps; where each push is one, those of all workers count.
  virtual uint64_t updates() const = 0;
};

// No network: the one Shard called directly, for one worker. All must outlive it.
kj::Own<KvStore> newLocalStore(const Placement& placement, const Rounds& rounds, Updater& updater,
    kj::ArrayPtr<float> parameters, kj::ArrayPtr<const float> gradients);

// Servers behind Cap'n Proto connections. Made by anyone; `run` belongs to the io thread, the
// KvStore methods to the compute thread. They meet in one queue of ready ranges and one array of
// answered pushes.
//
// `placement` and the store outlive the promise of run(). `gradients` are sent from where
// they lie and answers are written to `parameters`: both arrays outlive that promise, and
// `gradients` the connections too. So end the io thread before the program that owns the arrays.
class RemoteStore: public KvStore {
public:
  static kj::Own<RemoteStore> create(const Placement& placement, const Rounds& rounds, uint rank,
      kj::ArrayPtr<float> parameters, kj::ArrayPtr<const float> gradients);

  // On the io thread, once: talks to `shards` (one a server, in order; connected) until the promise
  // is dropped; it never resolves. Rejects when a server is lost or refuses: the exception names it
  // by its entry in `names` ("server 1 at 127.0.0.1:4711") and has also woken the compute thread.
  // Dropping the promise fails the store.
  virtual kj::Promise<void> run(
      kj::Array<ShardService::Client> shards, kj::Array<kj::String> names) = 0;

  // From any thread: makes every present and future wait of the compute thread throw `reason`. The
  // first reason stays.
  virtual void fail(kj::Exception reason) = 0;

  // What went over the wire so far, payloads only. Any thread.
  struct Traffic {
    uint64_t pushed_bytes = 0;
    uint64_t pulled_bytes = 0;
  };
  virtual Traffic traffic() const = 0;
};

}  // namespace rpc

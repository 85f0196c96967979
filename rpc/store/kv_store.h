// rpc/store/kv_store.h: the worker's side of the parameter server, as its compute thread sees it.
#pragma once

#include <kj/array.h>
#include <kj/memory.h>

#include "rpc/placement.h"
#include "rpc/rounds.h"

namespace rpc {

class RemoteStore;

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
  // What of it talks to shards elsewhere, for the io thread; null if there are none. As old as this
  // store.
  virtual kj::Maybe<RemoteStore&> remote() { return nullptr; }
};

// No network: the one Shard called directly, for one worker. All must outlive it.
kj::Own<KvStore> newLocalStore(const Placement& placement, const Rounds& rounds, Updater& updater,
    kj::ArrayPtr<float> parameters, kj::ArrayPtr<const float> gradients);

// For a program that updates its parameters itself (nn::Trainer): it does nothing.
kj::Own<KvStore> newNoStore();

}  // namespace rpc

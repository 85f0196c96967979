// rpc/store/kv_store.h: the worker's side of the parameter server, as its compute thread sees it.
#pragma once

#include <kj/array.h>
#include <kj/memory.h>

#include "configs/language/state_visitor.h"
#include "rpc/placement.h"
#include "rpc/rounds.h"

namespace rpc {

class RemoteStore;

// A worker's store. All methods are called by the compute thread. Ranges count floats of the flat
// array and cover whole keys. Methods throw if the store is lost.
class KvStore {
public:
  virtual ~KvStore() noexcept(false) = default;

  // Every worker calls it once, before anything else. Rank 0's `parameters` become the initial
  // values. Returns when all workers have them.
  virtual void initialize() = 0;
  // Pushes the gradients of this range, which are complete for `step` (from 0). Returns
  // immediately. The range of `gradients` must not change before await() of the same range for step
  // + 1 has returned. Until then, the range of `parameters` may change.
  virtual void push(uint64_t step, uint64_t begin, uint64_t end) = 0;
  // Pushes only the gradients of these slices for `step`, and waits until these pushes were
  // answered. The worker must not push anything after that. Only RemoteStore implements this
  // function. Other stores throw FAILED.
  virtual void pushLast(uint64_t step, kj::ArrayPtr<const SliceId> slices);
  // Waits until this range of `parameters` has the values for `step`: the answer to this worker's
  // push of step - 1, which must have been pushed. (What the answer waits for depends on the mode:
  // see rpc/rounds.h.)
  virtual void await(uint64_t step, uint64_t begin, uint64_t end) = 0;
  // Ends an epoch: waits until all pushes of this worker were answered. From then until its next
  // push, no other worker waits for it. Therefore every worker must call this before any of them
  // pushes again.
  virtual void rest() = 0;
  // Waits until all pushes of this worker were answered, but does not end an epoch. The call
  // changes no values, except in modes whose bits depend on which pushes arrive first. In modes
  // where other workers could wait for this one, every worker must call settle() before any of them
  // pushes again. Each of them must then call refresh() before its next push.
  virtual void settle() { rest(); }
  // Visits the state that this worker keeps from step to step, in addition to the state of the
  // shards. To save, call it after settle(). To restore, call it before RemoteStore::run(), and
  // then call resume() in place of initialize(). The shards must have been restored, too.
  virtual void visitState(configs::StateVisitor& visitor) = 0;
  // After restoring the state of another worker: forgets its personal parts, which are values that
  // compression has not sent yet and counts of traffic.
  virtual void forgetOwn() {}
  // Continues with the state that visitState() has restored. Returns when all workers have called
  // this. Later steps are numbered as if there had been no break.
  virtual void resume() = 0;
  // Fetches the newest values of all slices. If all workers rest, all of them then have the same
  // values.
  virtual void refresh() = 0;
  // Whether the shards hold, between two steps and bit for bit, the parameters that this worker
  // computes with.
  virtual bool areParametersOnShards() const { return false; }
  // Returns how many updates are in the newest values of the placement's first slice that this
  // worker has received; 0 before any. If a round takes the gradients of all workers, that is the
  // number of this worker's answered steps. If each push is a round, the pushes of all workers
  // count. The store of own_steps.h returns the number of steps that this worker has made.
  virtual uint64_t updates() const = 0;
  // Returns the part that talks to servers, for the io thread. Null if there are no servers. It
  // lives as long as this store.
  virtual kj::Maybe<RemoteStore&> remote() { return nullptr; }
};

// Makes a store without a network: it calls the only Shard directly, for one worker. All arguments
// must outlive it.
kj::Own<KvStore> newLocalStore(const Placement& placement, const Rounds& rounds, Updater& updater,
    kj::ArrayPtr<float> parameters, kj::ArrayPtr<const float> gradients);

// Makes a store that does nothing, for a program that updates its parameters itself (nn::Trainer).
kj::Own<KvStore> newNoStore();

}  // namespace rpc

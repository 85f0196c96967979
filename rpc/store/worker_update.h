// rpc/store/worker_update.h: updates that a worker makes itself, and the store of a worker that
// makes all updates itself.
#pragma once

#include <kj/array.h>

#include "rpc/shared_memory/shared_memory.h"
#include "rpc/store/kv_store.h"

namespace rpc {

// Makes a shard's updates without a shard: it updates a worker's own parameters in place. On one
// thread.
//
// Memory: the updater's state for each value, and one slice.
class WorkerUpdate {
public:
  // `parameters` is the whole flat array. All arguments must outlive it.
  WorkerUpdate(const Placement& placement, Updater& updater, kj::ArrayPtr<float> parameters);

  // Updates slice `id` once.
  void update(SliceId id, const Round& round);

  // Visits the updater's state, to save and to restore it.
  void visitState(configs::StateVisitor& visitor);

private:
  const Placement& placement;
  Updater& updater;
  kj::ArrayPtr<float> parameters;
  kj::Array<kj::Array<float>> states;  // of each slice
  kj::Array<float> next;               // of the largest
};

// The updater of a shard whose workers make the update. It keeps the sum as the slice's values, so
// the sum becomes the answer. (The server of MXNet 1.x without an optimizer does the same.)
class SumUpdater final: public Updater {
public:
  uint stateArrays(const Slice&) const override { return 0; }
  void update(const Slice& slice, const Round& round, kj::ArrayPtr<const float> current,
      kj::ArrayPtr<float> next, kj::ArrayPtr<float> state) override;
};

// Makes a store for shards with a SumUpdater, whose rounds take one push of every worker. On the
// compute thread, await() updates each slice when its sum arrives. All workers make the same
// updates of the same values. Therefore their parameters stay equal to the bit, and equal to those
// of a server that makes the updates. refresh() has nothing to fetch. All arguments must outlive
// the store. RemoteStore says more about `gradients` and `memory`.
kj::Own<KvStore> newWorkerUpdateStore(const Placement& placement, const Rounds& rounds, uint rank,
    Updater& updater, kj::ArrayPtr<float> parameters, kj::ArrayPtr<const float> gradients,
    kj::Maybe<SharedMemory&> memory = nullptr);

}  // namespace rpc

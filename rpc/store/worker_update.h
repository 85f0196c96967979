// rpc/store/worker_update.h: updates that run in a worker, and the store of a worker that makes all
// of them.
#pragma once

#include <kj/array.h>

#include "rpc/shared_memory/shared_memory.h"
#include "rpc/store/kv_store.h"

namespace rpc {

// A shard's updates without a shard: of a worker's own parameters, where they lie. On one thread.
//
// Memory: the updater's state for every value, and one slice.
class WorkerUpdate {
public:
  // `parameters`: the whole flat array. All must outlive it.
  WorkerUpdate(const Placement& placement, Updater& updater, kj::ArrayPtr<float> parameters);

  // One update of slice `id`.
  void update(SliceId id, const Round& round);

private:
  const Placement& placement;
  Updater& updater;
  kj::ArrayPtr<float> parameters;
  kj::Array<kj::Array<float>> states;  // of each slice
  kj::Array<float> next;               // of the largest
};

// What a shard does whose workers make the update: it keeps the sum as it is, which so becomes the
// answer. (MXNet's server of 1.x without an optimizer does the same.)
class SumUpdater final: public Updater {
public:
  uint stateArrays(const Slice&) const override { return 0; }
  void update(const Slice& slice, const Round& round, kj::ArrayPtr<const float> current,
      kj::ArrayPtr<float> next, kj::ArrayPtr<float> state) override;
};

// For shards with a SumUpdater, where a round takes one push of every worker: await() makes the
// update with the sum, slice by slice as they come, on the compute thread. Since all workers make
// the same updates of the same values, their parameters stay equal to the bit, and equal to those
// of a server that makes them. refresh() has nothing to fetch. All arguments must outlive it;
// `gradients` and `memory` as RemoteStore says.
kj::Own<KvStore> newWorkerUpdateStore(const Placement& placement, const Rounds& rounds, uint rank,
    Updater& updater, kj::ArrayPtr<float> parameters, kj::ArrayPtr<const float> gradients,
    kj::Maybe<SharedMemory&> memory = nullptr);

}  // namespace rpc

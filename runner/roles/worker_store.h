// runner/roles/worker_store.h: the store that a worker of an experiment trains with.
#pragma once

#include "rpc/shard/updater.h"
#include "rpc/store/kv_store.h"
#include "runner/experiment/experiment.h"

namespace runner {

struct WorkerStore {
  kj::Own<rpc::KvStore> store;
  // What of it the io thread connects to shards elsewhere; null where there are none.
  kj::Maybe<rpc::RemoteStore&> remote;
};

// For the worker of rank `rank`, by the experiment's mode. `updater` is the worker's own, for
// updates that run here. In `memory`, if there is one, lies what the mode pushes. All arguments
// must outlive the store; see rpc::RemoteStore about the arrays.
WorkerStore makeWorkerStore(const Experiment& experiment, const rpc::Placement& placement,
    uint rank, rpc::Updater& updater, kj::ArrayPtr<float> parameters,
    kj::ArrayPtr<const float> gradients, kj::Maybe<rpc::SharedMemory&> memory);

// For the worker of a program that updates its parameters itself: it does nothing.
WorkerStore noStore();

}  // namespace runner

// rpc/store/local_sgd.h: the store of workers that make several steps by themselves.
#pragma once

#include "rpc/store/worker_update.h"

namespace rpc {

// push() makes the worker's own update at once, with its own gradient and a state that stays here
// (local SGD with local momentum). With `localSteps` steps a block is full: the worker pushes by
// how much they changed its values (old - new) as one round, which takes that of every worker, and
// its next step waits for what the shards make of them. A block that rest() finds begun ends there;
// workers that all make the same number of steps so stay in step.
//
// `updater` and `parameters` are for the worker's own updates, numbered by its steps; `gradients`
// are read within push(). All ranges of a step are pushed before the next step is waited for. What
// the shards keep, and their updater sees, are the values after each round, and sums of
// differences. With `memory`, a worker's, the differences lie there, for servers of this machine to
// read: see RemoteStore. All arguments must outlive it.
kj::Own<UpdatingStore> newLocalSgdStore(const Placement& placement, const Rounds& rounds, uint rank,
    uint localSteps, Updater& updater, kj::ArrayPtr<float> parameters,
    kj::ArrayPtr<const float> gradients, kj::Maybe<SharedMemory&> memory = nullptr);

}  // namespace rpc

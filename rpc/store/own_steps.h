// rpc/store/own_steps.h: the store of workers that make several steps by themselves.
#pragma once

#include "rpc/shared_memory/shared_memory.h"
#include "rpc/store/kv_store.h"

namespace rpc {

// How a worker meets the others after steps of its own.
struct OwnSteps {
  uint steps;  // that fill a block, 1 or more
  // Null: the worker takes over the values that the shards answer, and all workers begin the next
  // block with the same ones (local SGD). That needs rounds of all workers. Otherwise it continues
  // with values of its own, x ← x + drawn · (answered - x) (elastic averaging).
  kj::Maybe<float> drawn = nullptr;
};

// push() makes the worker's own update at once, with its own gradient and a state that stays here
// (local SGD with local momentum). When a block is full, the worker pushes how far its values are
// from those that the shards answered last (answered - own). Its next step waits for the answer to
// that push. A block that rest() finds begun ends there; workers that all make the same number of
// steps so stay in step.
//
// refresh() gives `parameters` the shards' values. The next step goes on with the worker's own,
// where it has such.
//
// `updater` and `parameters` are for the worker's own updates, numbered by its steps; `gradients`
// are read within push(). All ranges of a step are pushed before the next step is waited for. What
// the shards keep, and their updater sees, are the values after each round, and sums of
// differences. With `memory`, a worker's, the differences lie there, for servers of this machine to
// read: see RemoteStore. All arguments must outlive it.
kj::Own<KvStore> newOwnStepsStore(const Placement& placement, const Rounds& rounds, uint rank,
    OwnSteps ownSteps, Updater& updater, kj::ArrayPtr<float> parameters,
    kj::ArrayPtr<const float> gradients, kj::Maybe<SharedMemory&> memory = nullptr);

}  // namespace rpc
